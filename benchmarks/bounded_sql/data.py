"""NEXMark's events in Parquet files: a directory for each table, made once and kept beside the peers' environments."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from benchmarks.venvs import cache_directory
from firesteel.connectors.generators.nexmark import NexmarkConfig

__all__ = ["event_files", "write_events"]

RATE = 100_000
FILES = 2
_PER_BATCH = 100_000


def event_files(events: int) -> Path:
    """A directory with the files of so many events."""
    directory = cache_directory() / "data" / f"nexmark-parquet-{events}"
    if directory.is_dir():
        return directory
    unfinished = directory.with_name(f"{directory.name}.{os.getpid()}")
    write_events(unfinished, events, RATE)
    try:
        unfinished.rename(directory)
    except OSError:  # another run was faster
        shutil.rmtree(unfinished)
    return directory


def write_events(directory: Path, events: int, rate: int, files: int = FILES) -> None:
    """Writes the events that the connector ``nexmark`` makes by default; each table has so many files."""
    from firesteel.table.connectors.nexmark.columns import ROW_TYPE
    from firesteel.table.connectors.nexmark.source import NexmarkColumnGenerator

    config = NexmarkConfig(
        events_per_second=float(rate), has_many_channels=True, person_size=200, auction_size=500, bid_size=100
    )
    for kind, part in enumerate(ROW_TYPE.fields[1:]):
        type_: Any = part.type
        paths = tuple((part.name, name) for name in type_.field_names)
        generator = NexmarkColumnGenerator(config, paths, type_, frozenset({kind}))
        target = directory / part.name
        target.mkdir(parents=True)
        each = -(-events // files)
        for number in range(files):
            indexes = range(number * each, min((number + 1) * each, events))
            _write_file(target / f"part-{number}.parquet", generator, indexes)


def _write_file(path: Path, generator: Any, indexes: range) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches = (generator.generate(indexes[start : start + _PER_BATCH]) for start in range(0, len(indexes), _PER_BATCH))
    first = next(batches)
    with pq.ParquetWriter(path, first.schema) as writer:
        for batch in (first, *batches):
            writer.write_table(pa.Table.from_batches([batch]))
