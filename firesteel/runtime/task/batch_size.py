"""How many records a task processes at a time."""

from __future__ import annotations

from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.time.turns import MAX_TURN_S

__all__ = ["BatchSize"]

_SOURCE_TURN_S = MAX_TURN_S / 5
"""How long a source should take for the records that it reads at a time; the rest of a longer turn is held."""
_MAX_GROWTH = 8
"""How many times as many records the next batch may have, at most."""
_LEAST_ROWS = 1024
"""A batch of columns costs much the same whether it has one row or this many."""
_MOST_ROWS = 16_384
_NO_LIMIT = 1 << 62


class BatchSize:
    """The number of records of the next batch: fewer where they take long.

    Without ``adapts`` it stays as it is: in a stage all input is processed before the output is read, and a task that
    runs again cuts its input as before.
    """

    def __init__(self, *, is_source: bool, has_columns: bool, adapts: bool) -> None:
        self._adapts = adapts
        self._limit = _NO_LIMIT if not is_source else _MOST_ROWS if has_columns else SourceOperator.MAX_RECORDS
        self._turn_s = _SOURCE_TURN_S if is_source else MAX_TURN_S
        self._least = _LEAST_ROWS if has_columns else 1
        # it is not yet known how long a record takes
        self.most = self._least if adapts else self._limit

    def expect_columns(self) -> None:
        """Records come as columns."""
        if self._least == 1:
            self._least = _LEAST_ROWS
            self.most = max(self.most, _LEAST_ROWS)

    def adapt(self, records: int, took: float) -> None:
        """Sets the size of the next batch after one of so many records that took so long."""
        if not self._adapts:
            return
        if took > self._turn_s:
            if records:
                self.most = max(self._least, min(int(records * self._turn_s / took), self.most))
        elif records >= self.most and took < self._turn_s / 4:
            # until it is no longer what limits a batch
            growth = min(self._turn_s / 2 / max(took, 1e-9), _MAX_GROWTH)
            self.most = min(int(self.most * growth), self._limit)
