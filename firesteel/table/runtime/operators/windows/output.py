"""The columns of the results of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.table.plan.windows import WindowColumn
from firesteel.table.runtime.operators.windows.times import WindowTimes, timestamps

__all__ = ["grouped_columns"]


def grouped_columns(
    grouping: Sequence[int | WindowColumn], keys: Sequence[Any], starts: Any, ends: Any, times: WindowTimes
) -> list[Any]:
    """The columns by which results are grouped: keys in their order, and the columns of windows."""
    remaining = iter(keys)
    arrays = []
    for column in grouping:
        if column is WindowColumn.START:
            arrays.append(timestamps(starts))
        elif column is WindowColumn.END:
            arrays.append(timestamps(ends))
        elif column is WindowColumn.TIME:
            arrays.append(times.window_times(ends))
        else:
            arrays.append(next(remaining))
    return arrays
