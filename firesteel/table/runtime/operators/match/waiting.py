"""Rows that wait for the watermark, as columns in the order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = ["Rows", "WaitingRows"]


class Rows(NamedTuple):
    """Rows with their times, and for each condition on the current row alone whether it holds."""

    data: Any
    times: Any
    flags: Sequence[Any]

    def take(self, places: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.data.take(pa.array(places)), self.times[places], [flag[places] for flag in self.flags])

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """The rows of several parts."""
        if len(parts) == 1:
            return parts[0]
        data = pa.Table.from_batches([part.data for part in parts]).combine_chunks().to_batches()
        flags = zip(*(part.flags for part in parts), strict=True)
        times = np.concatenate([part.times for part in parts])
        return Rows(data[0], times, [np.concatenate(found) for found in flags])


class WaitingRows:
    """Parts with the earliest time of each, so that parts of which no row is due are not touched."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, Rows]] = []

    def add(self, rows: Rows) -> None:
        """Adds rows that arrived after those that wait."""
        if len(rows.times):
            self._parts.append((int(rows.times.min()), rows))

    def take_due(self, watermark: int) -> Rows | None:
        """Removes and returns the rows that the watermark has passed, in the order of arrival."""
        if not any(earliest <= watermark for earliest, _ in self._parts):
            return None
        due: list[Rows] = []
        left: list[tuple[int, Rows]] = []
        for earliest, rows in self._parts:
            if earliest > watermark:
                left.append((earliest, rows))
                continue
            is_due = rows.times <= watermark
            if is_due.all():
                due.append(rows)
                continue
            due.append(rows.take(np.flatnonzero(is_due)))
            others = rows.take(np.flatnonzero(~is_due))
            left.append((int(others.times.min()), others))
        self._parts = left
        return Rows.joined(due)

    def parts(self) -> list[Rows]:
        """All rows that wait."""
        return [rows for _, rows in self._parts]
