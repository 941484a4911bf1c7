"""User metrics, as ``RuntimeContext.get_metrics_group()`` gives them."""

from firesteel.runtime.model.metrics import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
