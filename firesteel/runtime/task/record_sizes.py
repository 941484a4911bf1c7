"""Size estimation of records that tasks of one slot pass to each other as objects."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.serialization import serialize_records
from firesteel.runtime.network.gate import HandedOver

__all__ = ["ObjectBytes"]

_SAMPLE_INTERVAL_S = 5.0


class ObjectBytes:
    """Estimates bytes from the size of a few records, pickled every few seconds."""

    def __init__(self) -> None:
        self._size = 0.0
        self._next_sample = 0.0
        self._seen = 0
        self._bytes = 0.0

    def of(self, handed_over: Sequence[HandedOver]) -> int:
        """The bytes of all records so far."""
        records = sum(each.records for each in handed_over)
        if records != self._seen:
            self._measure(handed_over)
            self._bytes += (records - self._seen) * self._size
            self._seen = records
        return int(self._bytes)

    def _measure(self, handed_over: Iterable[HandedOver]) -> None:
        sizes = []
        for each in handed_over:
            sample = each.sample
            if sample:
                each.sample = None
                sizes.append(_size_of(sample))
        if sizes:
            self._size = sum(sizes) / len(sizes)
        now = time.monotonic()
        if now >= self._next_sample:
            self._next_sample = now + _SAMPLE_INTERVAL_S
            for each in handed_over:
                each.sample = ()


def _size_of(records: Sequence[Any]) -> float:
    if isinstance(records, ColumnBatch):
        return records.nbytes / len(records)
    try:
        return len(serialize_records(list(records), None)) / len(records)
    except Exception:  # noqa: BLE001 - what never leaves the process need not be fit for it
        return 0.0
