"""Late records: those that arrive after all their windows were purged."""

from __future__ import annotations

from typing import Any

from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.window.output import WindowOutput
from firesteel.runtime.operators.window.spec import WindowSpec

__all__ = ["LateRecords"]


class LateRecords:
    """Sends late records to the late side output, or drops them, and counts them.

    ``numLateRecords`` counts all of them, Flink's ``numLateRecordsDropped`` those that went nowhere.
    """

    __slots__ = ("_dropped", "_late", "_output", "_records_of", "_tag")

    def __init__(self, spec: WindowSpec, context: OperatorContext, output: WindowOutput):
        self._tag = spec.late_tag
        self._output = output
        self._records_of = spec.aggregate_function.records_of if spec.reads_partials else None
        self._late = context.counter("numLateRecords")
        self._dropped = context.counter("numLateRecordsDropped")

    def add(self, value: Any, timestamp: int) -> None:
        self._late.inc()
        records = (value,) if self._records_of is None else self._records_of(value)
        if self._tag is None or not records:
            self._dropped.inc()
        else:
            self._output.collect_side(self._tag, records[0], timestamp)
