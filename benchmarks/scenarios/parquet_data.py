"""Pairs of a key and a number in Parquet files, made once and kept beside the peers' environments."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks.cases import KEYS
from benchmarks.venvs import cache_directory

__all__ = ["pairs"]

_PER_FILE = 5_000_000
_PER_GROUP = 500_000


def pairs(records: int) -> Path:
    """A directory of Parquet files with that many rows (key, value): keys at random, values from 0 on."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory = cache_directory() / "data" / f"pairs-{records}"
    if directory.is_dir():
        return directory
    unfinished = directory.with_name(f"{directory.name}.{os.getpid()}")
    unfinished.mkdir(parents=True)
    random = np.random.default_rng(records)
    for number, begin in enumerate(range(0, records, _PER_FILE)):
        count = min(_PER_FILE, records - begin)
        table = pa.table(
            {
                "key": pa.array(random.integers(0, KEYS, count)),
                "value": pa.array(np.arange(begin, begin + count)),
            }
        )
        pq.write_table(table, unfinished / f"part-{number:05}.parquet", row_group_size=_PER_GROUP)
    try:
        unfinished.rename(directory)
    except OSError:  # another run was faster
        shutil.rmtree(unfinished)
    return directory
