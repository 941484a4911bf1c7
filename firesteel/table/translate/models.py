"""Streams of rows beside what a model returns for them."""

from __future__ import annotations

from firesteel.config.table_options import (
    ASYNC_ML_PREDICT_MAX_CONCURRENT_OPERATIONS,
    ASYNC_ML_PREDICT_OUTPUT_MODE,
    ASYNC_ML_PREDICT_TIMEOUT,
)
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.correlates import MLPredict
from firesteel.table.runtime.operators.predict import PredictedRows, PredictSpec, async_predict_spec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["ml_predict"]


@translates(MLPredict)
def ml_predict(node: MLPredict, translator: Translator) -> Columns:
    """The rows that a model returns; unordered ones if rows are only added, so that no change overtakes another."""
    model, options, configuration = node.model, node.options, translator.configuration
    rows = PredictedRows(
        node.columns,
        model.input_type,
        model.output_type,
        node.row_type,
        rowtime_of(node.row_type),
        model.identifier.as_summary_string(),
    )
    function = None if options.is_async is False else model.provider.create_async_predict_function()
    spec: OperatorSpec
    if function is not None:
        is_ordered = options.is_ordered
        if is_ordered is None:
            is_ordered = configuration.get(ASYNC_ML_PREDICT_OUTPUT_MODE) == "ORDERED"
        timeout_ms = options.timeout_ms
        if timeout_ms is None:
            timeout_ms = configuration.get(ASYNC_ML_PREDICT_TIMEOUT).to_millis()
        spec = async_predict_spec(
            function,
            rows,
            timeout_ms,
            options.max_concurrent or configuration.get(ASYNC_ML_PREDICT_MAX_CONCURRENT_OPERATIONS),
            is_ordered or not translator.traits(node.input).mode.is_insert_only,
        )
    else:
        one_by_one = None if options.is_async else model.provider.create_predict_function()
        if one_by_one is None:
            mode = "async" if options.is_async else "sync"
            raise ValidationError(
                f"Require {mode} mode, but model provider {model.provider.name} doesn't support {mode} mode."
            )
        spec = PredictSpec(one_by_one, rows)
    stream = translator.translate(node.input)
    return translator.apply(stream, "MLPredict", spec, state_of=node if function is not None else None)
