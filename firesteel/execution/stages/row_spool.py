"""Spillable row buffer, read in another order than it was written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from firesteel.execution.stages.exchange_rows import ExchangeRow, unpack_row
from firesteel.execution.stages.row_order import row_position

__all__ = ["RowSpool", "runs_of_rows"]

_IN_MEMORY = 64 << 20


class RowSpool:
    """Rows of the same order, which come in any order."""

    def __init__(self, in_memory: int = _IN_MEMORY):
        self._in_memory = in_memory
        self._rows: list[tuple[tuple[int, int, int], bytes | tuple[int, int]]] = []
        self._file: IO[bytes] | None = None
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: ExchangeRow, packed: bytes) -> None:
        self.bytes += len(packed)
        place: bytes | tuple[int, int] = packed
        if self.bytes > self._in_memory:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="firesteel-rows-")  # noqa: SIM115 - closed in clear
            place = self._file.tell(), len(packed)
            self._file.write(packed)
        self._rows.append((row_position(row), place))

    def rows(self) -> Iterator[ExchangeRow]:
        """All rows by edge, producer and sequence."""
        for _, place in sorted(self._rows, key=lambda entry: entry[0]):
            if isinstance(place, tuple):
                assert self._file is not None
                self._file.seek(place[0])
                yield unpack_row(self._file.read(place[1]))
            else:
                yield unpack_row(place)

    def clear(self) -> None:
        self._rows.clear()
        self.bytes = 0
        if self._file is not None:
            self._file.close()
            self._file = None


def runs_of_rows(rows: Iterable[bytes], order_of: Callable[[ExchangeRow], int | None]) -> Iterator[RowSpool | bytes]:
    """Rows sorted by their order, as a spool for each order; one for which there is none comes by itself.

    A spool is good until the next is asked for.
    """
    spool = RowSpool()
    current: int | None = None
    try:
        for packed in rows:
            row = unpack_row(packed)
            order = order_of(row)
            if order is None:
                yield packed
                continue
            if order != current:
                if spool:
                    yield spool
                    spool.clear()
                current = order
            spool.add(row, packed)
        if spool:
            yield spool
    finally:
        spool.clear()
