"""Batches of columns for tests."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch

__all__ = ["bids", "rows_of", "simple"]


def simple(*numbers: int, kinds: list[int] | None = None, rowtime: int | None = None) -> ColumnBatch:
    """Rows of a number and its text."""
    data = pa.record_batch(
        {"number": pa.array(numbers, pa.int64()), "text": pa.array([f"t{number}" for number in numbers], pa.string())}
    )
    return ColumnBatch(data, None if kinds is None else np.array(kinds, np.int8), rowtime)


def bids(count: int, seed: int = 1, keys: int = 100) -> ColumnBatch:
    """Rows like NEXMark's bids, with nulls."""
    draw = random.Random(seed)
    texts = [None if draw.random() < 0.05 else "x" * draw.randrange(40) for _ in range(count)]
    data = pa.record_batch(
        {
            "auction": pa.array([draw.randrange(keys) for _ in range(count)], pa.int64()),
            "price": pa.array([None if draw.random() < 0.05 else draw.randrange(10_000) for _ in range(count)]),
            "url": pa.array(texts, pa.string()),
            "time": pa.array(range(count), pa.timestamp("ms")),
        }
    )
    return ColumnBatch(data, None, 3)


def rows_of(*batches: ColumnBatch) -> list[Any]:
    """The rows as dicts, with their kinds where they have any."""
    rows: list[Any] = []
    for batch in batches:
        found = batch.data.to_pylist()
        if batch.kinds is not None:
            found = [{**row, "kind": kind} for row, kind in zip(found, batch.kinds.tolist(), strict=True)]
        rows += found
    return rows
