"""When partitions of a streaming sink are complete, and what marks them."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.connectors.files.writer import FileSinkWriter
from firesteel.spi.sink import Committer, SinkWriter
from firesteel.table.connectors.filesystem.bulk_files import Part
from firesteel.table.connectors.filesystem.partitions import values_of_path
from firesteel.table.values.date_format import parser
from firesteel.table.values.zones import find_zone, to_instant

__all__ = [
    "AT_ONCE",
    "CommitTrigger",
    "PartWatermark",
    "PartitionCommitWriter",
    "PartitionCommitter",
    "PendingPartition",
]

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps
_MILLISECOND = dt.timedelta(milliseconds=1)
_NANOS = 1_000_000
_MIN = -(2**63)


@dataclass(frozen=True)
class CommitTrigger:
    """When a partition is complete: so long after its first row, or when the watermark has passed its time."""

    by_partition_time: bool = False
    delay_ms: int = 0
    pattern: str | None = None
    """The time of a partition, with ``$name`` for its values; None for the first value."""
    formatter: str | None = None
    """Java's pattern of that time; None for ``yyyy-MM-dd HH:mm:ss`` and ``yyyy-MM-dd``."""
    zone: str = "UTC"

    def is_due(self, bucket: str, created_ms: int, now_ms: int, watermark: int) -> bool:
        """Whether a partition is complete."""
        if not self.by_partition_time:
            return self.delay_ms == 0 or now_ms >= created_ms + self.delay_ms
        return watermark > self.time_of(bucket) + self.delay_ms

    def time_of(self, bucket: str) -> int:
        """The time of a partition, in milliseconds.

        >>> CommitTrigger(pattern="$dt $hour:00:00").time_of("dt=1970-01-02/hour=1")
        90000000
        """
        values = values_of_path(f"{bucket}/")
        text = next(iter(values.values()), "")
        if self.pattern is not None:
            text = self.pattern
            for name, value in values.items():
                text = text.replace(f"${name}", value)
        return to_instant(self._local_ms(text, bucket) * _NANOS, find_zone(self.zone)) // _NANOS

    def _local_ms(self, text: str, bucket: str) -> int:
        try:
            if self.formatter is not None:
                return parser(self.formatter)(text).nanos // _NANOS
            form = "%Y-%m-%d %H:%M:%S" if ":" in text else "%Y-%m-%d"
            return (dt.datetime.strptime(text, form) - _EPOCH) // _MILLISECOND  # noqa: DTZ007
        except ValueError as error:
            raise FiresteelError(
                f"The partition '{bucket}' has no time: '{text}' cannot be parsed.",
                hint="Set 'partition.time-extractor.timestamp-pattern' and '…timestamp-formatter'.",
            ) from error


AT_ONCE = CommitTrigger()
"""As soon as there are files."""


@dataclass(frozen=True)
class PartWatermark:
    """Comes with the parts: event time has reached a timestamp."""

    timestamp: int


@dataclass(frozen=True)
class PendingPartition:
    """A partition with rows that is not marked yet; in checkpoints."""

    bucket: str
    created_ms: int


@dataclass(frozen=True)
class _Complete:
    """A partition that is marked once the files of the checkpoint are visible."""

    directory: str


class PartitionCommitWriter(SinkWriter[Any]):
    """Writes files, and hands partitions over that are complete at a checkpoint, with all of their files."""

    def __init__(
        self,
        files: FileSinkWriter,
        root: Path,
        trigger: CommitTrigger,
        restored: Sequence[PendingPartition] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._root = root
        self._trigger = trigger
        self._clock = clock
        self._pending = {partition.bucket: partition.created_ms for partition in restored}
        self._complete: list[str] = []
        self._watermark = _MIN
        self.has_room = files.has_room  # type: ignore[method-assign]
        self.notify_checkpoint_complete = files.notify_checkpoint_complete  # type: ignore[method-assign]
        self.close = files.close  # type: ignore[method-assign]

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        parts = [value for value in values if isinstance(value, Part)]
        for part in parts:
            if part.bucket not in self._pending:
                self._pending[part.bucket] = self._now_ms()
        for value in values:
            if isinstance(value, PartWatermark):
                self._watermark = max(self._watermark, value.timestamp)
        self._files.write_batch(parts, None)

    def flush(self, end_of_input: bool) -> None:
        now = self._now_ms()
        for bucket, created in list(self._pending.items()):
            if end_of_input or self._trigger.is_due(bucket, created, now, self._watermark):
                self._files.roll_bucket(bucket)
                self._complete.append(bucket)
                del self._pending[bucket]
        self._files.flush(end_of_input)

    def prepare_commit(self) -> list[Any]:
        complete, self._complete = self._complete, []
        return [*self._files.prepare_commit(), *(_Complete(str(self._root / bucket)) for bucket in complete)]

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        pending = (PendingPartition(bucket, created) for bucket, created in self._pending.items())
        return [*self._files.snapshot_state(checkpoint_id), *pending]

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


class PartitionCommitter(Committer[Any]):
    """Commits files, then writes a file into each partition that is complete."""

    def __init__(self, files: Committer[Any], success_file: str) -> None:
        self._files = files
        self._success_file = success_file
        self.finish = files.finish  # type: ignore[method-assign]
        self.close = files.close  # type: ignore[method-assign]

    def commit(self, committables: Sequence[Any]) -> None:
        self._commit(committables, self._files.commit)

    def recommit(self, committables: Sequence[Any]) -> None:
        self._commit(committables, self._files.recommit)

    def _commit(self, committables: Sequence[Any], commit: Callable[[Sequence[Any]], None]) -> None:
        commit([item for item in committables if not isinstance(item, _Complete)])
        for item in committables:
            if isinstance(item, _Complete):
                directory = Path(item.directory)
                directory.mkdir(parents=True, exist_ok=True)
                directory.joinpath(self._success_file).touch()
