"""Counters shared between a system's worker processes and its driver through small mapped files."""

from __future__ import annotations

import math
import mmap
import os
import uuid
from pathlib import Path

__all__ = ["BUCKETS", "Board", "bucket_of", "upper_ms"]

BUCKETS = 1024
_PER_DOUBLING = 32


def bucket_of(latency_us: float) -> int:
    """Bucket of a latency; bounds grow by 2.2% from one bucket to the next."""
    if latency_us <= 1.0:
        return 0
    return min(BUCKETS - 1, 1 + int(math.log2(latency_us) * _PER_DOUBLING))


def upper_ms(bucket: int) -> float:
    """Upper bound of a bucket in milliseconds: a percentile read from it is never flattering."""
    return float(2 ** (bucket / _PER_DOUBLING)) / 1000.0


class Board:
    """A directory of counters; each writer has a file of its own, so nobody waits for anybody."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def writer(self) -> memoryview:
        """A writer's slots: [0] counts records, [1 + b] counts latencies in bucket b."""
        path = Path(self.directory, uuid.uuid4().hex)
        size = 8 * (1 + BUCKETS)
        with path.open("wb+") as file:
            os.ftruncate(file.fileno(), size)
            return memoryview(mmap.mmap(file.fileno(), size)).cast("q")

    def read(self) -> tuple[int, dict[int, int]]:
        """Records counted by all writers, and the buckets that are not empty."""
        records = 0
        histogram: dict[int, int] = {}
        for path in Path(self.directory).iterdir():
            data = path.read_bytes()
            if len(data) < 8 * (1 + BUCKETS):
                continue
            slots = memoryview(data).cast("q")
            records += slots[0]
            for bucket in range(BUCKETS):
                if slots[1 + bucket]:
                    histogram[bucket] = histogram.get(bucket, 0) + slots[1 + bucket]
        return records, histogram
