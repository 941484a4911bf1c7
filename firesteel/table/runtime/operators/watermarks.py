"""Watermarks of SQL: the value of an expression over each row, and which of them are emitted between rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator, WatermarkOutput
from firesteel.runtime.columns.rowtime import to_millis
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.runtime.operators.calc import CompiledExpressions

__all__ = ["LatestWatermark", "RowWatermarks", "WatermarkExpression", "WatermarkOfRows"]


class WatermarkExpression(CompiledExpressions, TimestampAssigner):
    """The watermark that a batch brings: the latest of an expression over its rows."""

    def __init__(self, watermark: Expression, session: Session) -> None:
        super().__init__((watermark,), session)

    def extract_latest(self, batch: Any) -> int | None:
        """The latest value in milliseconds; None if all are null."""
        import pyarrow.compute as pc

        column = self.columns_of(batch.data)[0]
        latest = pc.max(column.cast("int64")).as_py()
        return None if latest is None else int(to_millis(latest, column.type))

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Rows of a batch are not asked one by one."""
        raise AssertionError("columns have no timestamps one by one")


class WatermarkOfRows(CompiledExpressions, TimestampAssigner):
    """The watermark that each row brings, and its time, for generators with ``on_rows``."""

    def __init__(self, watermark: Expression, rowtime: Expression, session: Session) -> None:
        super().__init__((watermark, rowtime), session)

    def extract_rows(self, batch: Any) -> tuple[Any, Any]:
        """Watermarks and times in milliseconds; a null watermark is before all times, a null time after all."""
        watermarks, times = self.columns_of(batch.data)
        return _millis(watermarks, MIN_LONG_VALUE), _millis(times, -(MIN_LONG_VALUE + 1))

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Rows of a batch are not asked one by one."""
        raise AssertionError("columns have no timestamps one by one")


def _millis(column: Any, null: int) -> Any:
    numbers = column.cast("int64")
    if not column.null_count:
        return to_millis(numbers.to_numpy(zero_copy_only=False), column.type)
    millis = to_millis(numbers.fill_null(0).to_numpy(zero_copy_only=False), column.type).copy()
    millis[column.is_null().to_numpy(zero_copy_only=False)] = null
    return millis


class LatestWatermark(WatermarkGenerator):
    """Watermarks that are computed from rows: the latest one so far, once in an interval."""

    def __init__(self) -> None:
        self._latest = MIN_LONG_VALUE

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Keeps the latest."""
        self._latest = max(self._latest, event_timestamp)

    def on_batch(self, timestamps: Sequence[int]) -> None:
        """The same for several."""
        self._latest = max(self._latest, *timestamps)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emits it."""
        output.emit_watermark(self._latest)


class RowWatermarks(LatestWatermark):
    """Emits the watermark of a row behind it, if it is more than an interval after the one emitted last.

    This is the rule of Flink's watermark assigner; with an interval of 0 it is that of the strategy ``on-event``. As
    there, watermarks begin after 1970.

    Where no row is late, it makes no difference between which rows of a batch a watermark comes. So a batch is cut only
    before a row that is late:

    >>> import numpy as np
    >>> watermarks = RowWatermarks(200)
    >>> watermarks.on_rows(np.array([900, 950, 1900]), np.array([1000, 1050, 2000]), 0)
    ([], 1900)
    >>> watermarks.on_rows(np.array([2900, 1500, 4900]), np.array([3000, 1600, 5000]), 1900)
    ([(1, 2900)], 4900)
    """

    def __init__(self, interval_ms: int) -> None:
        super().__init__()
        self._interval = interval_ms
        self._latest = 0

    def on_rows(self, watermarks: Any, times: Any, emitted: int) -> tuple[list[tuple[int, int]], int]:
        """Takes rows; ``emitted`` is the last watermark. Returns rows before which to emit one, and the last one."""
        import numpy as np

        emitted = max(emitted, 0)
        reached = np.maximum.accumulate(np.maximum(watermarks, max(self._latest, emitted)))
        self._latest = int(reached[-1])
        if self._latest - emitted <= self._interval:
            return [], emitted
        places = self._emissions(reached, emitted)
        # a session goes on with a row one millisecond after its end, so that row may be late, too
        suspects = np.flatnonzero(times[1:] - 1 <= reached[:-1]) + 1
        if not len(suspects):
            return [], int(reached[places[-1]])
        before = np.searchsorted(places, suspects)
        suspects, before = suspects[before > 0], before[before > 0] - 1
        is_late = times[suspects] - 1 <= reached[places[before]]
        chosen, first = np.unique(before[is_late], return_index=True)
        cuts = zip(suspects[is_late][first].tolist(), reached[places[chosen]].tolist(), strict=True)
        return list(cuts), int(reached[places[-1]])

    def _emissions(self, reached: Any, emitted: int) -> Any:
        """The rows behind which a watermark is emitted; at least one."""
        import numpy as np

        steps = np.flatnonzero(np.diff(reached, prepend=emitted) > 0)
        if (np.diff(reached[steps], prepend=emitted) > self._interval).all():
            return steps
        places = []
        for place, watermark in zip(steps.tolist(), reached[steps].tolist(), strict=True):
            if watermark - emitted > self._interval:
                places.append(place)
                emitted = watermark
        return np.array(places, np.intp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emits the latest."""
        if self._latest > 0:
            output.emit_watermark(self._latest)
