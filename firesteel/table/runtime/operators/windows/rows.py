"""The rows of windows, kept until their windows are over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.runtime.operators.windows.state import WindowState

__all__ = ["WindowRows", "split_rows"]

_MIN_ROWS = 16_384
"""Rows of a window from which on it is worth while to drop some."""


def split_rows(data: Any, codes: Any) -> Iterator[tuple[int, Any]]:
    """The rows of each code, in their order."""
    if not len(codes):
        return
    if (codes == codes[0]).all():
        yield int(codes[0]), data
        return
    order = np.argsort(codes, kind="stable")
    ordered = data.take(pa.array(order))
    distinct, starts = np.unique(codes[order], return_index=True)
    limits = [*starts[1:].tolist(), len(order)]
    for code, start, limit in zip(distinct.tolist(), starts.tolist(), limits, strict=True):
        yield code, ordered.slice(start, limit - start)


class WindowRows:
    """RecordBatches by the end of their window. With ``kept``, rows that it does not return are dropped in between."""

    def __init__(
        self,
        context: OperatorContext,
        name: str,
        key_columns: Sequence[int],
        kept: Callable[[Any], Any] | None = None,
    ):
        self._kept = kept
        self._limits: dict[int, int] = {}
        """How many rows of a window there may be until some are dropped."""
        self._counts: dict[int, int] = {}
        self._state = WindowState(context, name, key_columns)
        self._windows: dict[int, list[Any]] = {}
        self._changed: set[int] = set()
        for end, rows in self._state.restore():
            self._windows.setdefault(end, []).append(rows)

    def ends(self) -> list[int]:
        """The ends of all windows with rows."""
        return list(self._windows)

    def add(self, data: Any, codes: Any, ends: Any) -> None:
        """Adds rows; ``codes`` says which of the ends each row has."""
        for code, rows in split_rows(data, codes):
            end = int(ends[code])
            self._windows.setdefault(end, []).append(rows)
            self._changed.add(end)
            if self._kept is not None:
                self._drop(end, rows.num_rows)

    def _drop(self, end: int, added: int) -> None:
        assert self._kept is not None
        count = self._counts.get(end, 0) + added
        if count > self._limits.get(end, _MIN_ROWS):
            kept = self._kept(_joined(self._windows[end]))
            self._windows[end] = [kept]
            count = kept.num_rows
            self._limits[end] = max(2 * count, _MIN_ROWS)
        self._counts[end] = count

    def pop(self, end: int) -> Any | None:
        """Removes the rows of a window, and returns them; None if there are none."""
        found = self._windows.pop(end, None)
        self._changed.discard(end)
        self._counts.pop(end, None)
        self._limits.pop(end, None)
        self._state.drop(end)
        return None if found is None else _joined(found)

    def snapshot(self) -> None:
        """Stores the windows that changed since the last snapshot."""
        for end in self._changed:
            self._windows[end] = [_joined(self._windows[end])]
            self._state.store(end, self._windows[end][0])
        self._changed.clear()


def _joined(batches: Sequence[Any]) -> Any:
    return concat_batches([ColumnBatch(batch) for batch in batches]).data
