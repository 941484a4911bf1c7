"""Prometheus endpoint: all metrics of a cluster, under the names of Flink's own reporter."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from firesteel.cluster.diagnostics.known_jobs import KnownJobs, now_ms
from firesteel.cluster.diagnostics.last_answer import LastAnswer
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.view.job import JobView
from firesteel.jobmaster.view.metrics import job_metrics
from firesteel.jobmaster.view.vertices import SubtaskView, VertexView

__all__ = ["PrometheusMetrics"]

_JOB_LABELS = ("job_id", "job_name")
_TASK_LABELS = (
    *_JOB_LABELS,
    "task_id",
    "task_name",
    "task_attempt_num",
    "subtask_index",
    "host",
    "tm_id",
)
_OPERATOR_LABELS = (*_TASK_LABELS, "operator_id", "operator_name")
ANSWER_TIMEOUT_S = 2.0
_NOT_IN_NAMES = re.compile("[^a-zA-Z0-9_:]")


class PrometheusMetrics(Collector):
    """What ``GET /metrics`` answers.

    Everything is a gauge, as with Flink: counters start again with each attempt. ``cluster`` gives the metrics of the
    JobManager itself, by name.
    """

    def __init__(
        self,
        jobs: KnownJobs,
        cluster: Callable[[], Mapping[str, float]] | None = None,
        host: str | None = None,
    ):
        self._jobs = jobs
        self._cluster = cluster
        self._host = host or socket.gethostname()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._text = LastAnswer(self._generate, ANSWER_TIMEOUT_S, "firesteel-prometheus")

    def text(self) -> str:
        """All metrics, of now or, on a machine that is busy, of the request before: Prometheus waits ten seconds."""
        return self._text.get()

    def _generate(self) -> str:
        return generate_latest(self._registry).decode()

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing is known before there are jobs."""
        return []

    def collect(self) -> Iterable[GaugeMetricFamily]:
        families = _Families()
        views = [job.view() for job in self._jobs.jobs()]
        running = [view for view in views if not view.status.is_globally_terminal_state()]
        self._add_cluster(families, running)
        now = now_ms()
        for view in running:
            labels = (view.job_id, view.name)
            host = (self._host,)
            for name, value in job_metrics(view, now).items():
                families.add(f"flink_jobmanager_job_{name}", (*_JOB_LABELS, "host"), labels + host, value)
            for vertex in view.vertices():
                for subtask in vertex.subtasks():
                    _add_task(families, view, vertex, subtask)
        return families

    def _add_cluster(self, families: _Families, running: list[JobView]) -> None:
        known: dict[str, float] = {
            "numRunningJobs": sum(view.status is JobStatus.RUNNING for view in running),
            **({} if self._cluster is None else self._cluster()),
        }
        for name, value in known.items():
            families.add(f"flink_jobmanager_{name}", ("host",), (self._host,), value)


class _Families:
    """Samples grouped by name, as the format requires."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily] = {}

    def __iter__(self) -> Iterator[GaugeMetricFamily]:
        return iter(self._families.values())

    def add(self, name: str, labels: tuple[str, ...], values: tuple[str, ...], value: Any) -> None:
        if not isinstance(value, (int, float)):
            return  # Prometheus supports numbers only
        name = _NOT_IN_NAMES.sub("_", name)
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = GaugeMetricFamily(name, "", labels=labels)
        family.add_metric(values, float(value))


def _add_task(families: _Families, view: JobView, vertex: VertexView, subtask: SubtaskView) -> None:
    registration = subtask.registration
    if view.snapshot is None or registration is None:
        return
    labels = (
        view.job_id,
        view.name,
        vertex.id,
        vertex.name,
        str(subtask.attempt),
        str(subtask.index),
        registration.host,
        subtask.task_manager_id,
    )
    for name, value in subtask.metrics().items():
        families.add(f"flink_taskmanager_job_task_{name}", _TASK_LABELS, labels, value)
    for operator in vertex.job_vertex.operators:
        node = operator.node
        known = view.snapshot.metrics.values(vertex.id, node.operator_id, subtask.index)
        for name, value in known.items():
            families.add(
                f"flink_taskmanager_job_task_operator_{name}",
                _OPERATOR_LABELS,
                (*labels, node.operator_id, node.name),
                value,
            )
