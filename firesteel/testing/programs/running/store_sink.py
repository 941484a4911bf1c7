"""A sink that commits records to files in a directory, exactly once."""

from __future__ import annotations

import os
import pickle
import struct
import uuid
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, WriterContext
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["StoreSink", "committed_batches", "read_store"]

_NUMBER = struct.Struct(">Q")
"""How many batches had been committed before: what a file begins with."""


@dataclass(frozen=True)
class _Batch:
    """Records to be committed together, under a name that is never used again."""

    name: str
    payload: bytes


@dataclass
class StoreSink(Sink):
    """Writes what a checkpoint contains to one file for each subtask, once the checkpoint is complete."""

    directory: str
    trip: Trip | None = None

    def create_writer(self, context: WriterContext) -> SinkWriter[_Batch]:
        """Returns a writer that keeps records until a checkpoint."""
        return _Writer(self.trip)

    def create_committer(self) -> Committer[_Batch]:
        """Returns a committer."""
        return _Committer(Path(self.directory))

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """Exactly once."""
        return DeliveryGuarantee.EXACTLY_ONCE


class _Writer(SinkWriter[_Batch]):
    def __init__(self, trip: Trip | None):
        self._name = uuid.uuid4().hex  # an epoch may run a task again, in the same attempt
        self._trip = trip
        self._records: list[Any] = []
        self._batches = 0

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        for _ in values:
            step(self._trip)
        self._records += values

    def prepare_commit(self) -> list[_Batch]:
        if not self._records:
            return []
        self._batches += 1
        batch = _Batch(f"{self._name}-{self._batches}", pickle.dumps(self._records, pickle.HIGHEST_PROTOCOL))
        self._records = []
        return [batch]


class _Committer(Committer[_Batch]):
    """Gives a file its name in one step: a repeated commit of a batch, even a concurrent one, changes nothing."""

    def __init__(self, directory: Path):
        self._directory = directory

    def commit(self, committables: Sequence[_Batch]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        for batch in committables:
            names = [path.name for path in self._directory.iterdir() if not path.name.startswith(".")]
            if batch.name in names:
                continue
            hidden = self._directory / f".{batch.name}-{uuid.uuid4().hex}"
            hidden.write_bytes(_NUMBER.pack(len(names)) + batch.payload)
            with suppress(FileExistsError):
                os.link(hidden, self._directory / batch.name)
            hidden.unlink()


def committed_batches(directory: Path, known: Container[str] = ()) -> list[tuple[Path, list[Any]]]:
    """Returns the files of records in the order in which they were committed, without those known by name."""
    if not directory.is_dir():
        return []
    paths = [path for path in directory.iterdir() if not path.name.startswith(".") and path.name not in known]
    contents = sorted(((path.read_bytes(), path) for path in paths), key=lambda each: _NUMBER.unpack_from(each[0]))
    return [(path, pickle.loads(memoryview(content)[_NUMBER.size :])) for content, path in contents]


def read_store(directory: Path) -> list[Any]:
    """Returns all committed records, in the order in which they were committed."""
    return [record for _, records in committed_batches(directory) for record in records]
