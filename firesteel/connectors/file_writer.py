"""The writer and the committer of a FileSink."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from firesteel.common.connector import Committer, SinkWriter, WriterContext
from firesteel.common.errors import FiresteelError
from firesteel.common.serialization import Encoder
from firesteel.connectors.file_sink_policies import BucketAssigner, OutputFileConfig, RollingPolicy
from firesteel.connectors.rate_limiter import Clock

__all__ = ["FileCommitter", "FileWriteError", "FileWriter", "PartFile", "PendingFile"]

CAREFUL_BYTES = 1024 * 1024
SLICE_RECORDS = 1024


class FileWriteError(FiresteelError):
    """A file that cannot be written or committed; ``path`` is the file."""

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


@dataclass(frozen=True)
class PendingFile:
    """A complete but hidden part file, and the name it gets when it is committed."""

    in_progress_path: str
    final_path: str


class PartFile:
    """A part file that is being written."""

    def __init__(self, directory: Path, name: str, now_ms: int) -> None:
        self.final_path = directory / name
        self.path = directory / f".{name}.inprogress"
        self.size = 0
        self.created_ms = now_ms
        self.written_ms = now_ms
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._stream: BinaryIO = self.path.open("xb")
        except OSError as error:
            raise self._failed(error) from error

    def write(self, encoder: Encoder, values: Sequence[Any], now_ms: int) -> None:
        """Appends records."""
        try:
            encoder.encode_batch(values, self._stream)
            self.size = self._stream.tell()
        except OSError as error:
            raise self._failed(error) from error
        self.written_ms = now_ms

    def finish(self) -> PendingFile:
        """Makes the bytes durable and closes the file, still hidden."""
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
        except OSError as error:
            raise self._failed(error) from error
        return PendingFile(str(self.path), str(self.final_path))

    def abandon(self) -> None:
        """Closes the file and leaves it hidden."""
        self._stream.close()

    def _failed(self, error: OSError) -> FileWriteError:
        return FileWriteError(
            f"The output file '{self.path}' cannot be written: {error.strerror or error}.",
            path=str(self.path),
        )


class FileWriter(SinkWriter[PendingFile]):
    """Writes one subtask's part files, at most one at a time in each bucket.

    1. A record goes into its bucket's part file, which is hidden.
    2. A part file that the policy says to roll becomes pending: complete, durable, still hidden.
    3. Before a checkpoint and at the end of the input ``flush`` makes all part files pending. (Flink may keep
       one open over a checkpoint and cut it back after a failure.)
    4. ``prepare_commit`` hands the pending files over; the committer renames them once the checkpoint is
       complete.
    5. If nobody asked for the pending files after the end of the input, ``close`` commits them itself:
       without checkpoints the end is the only point at which output is known to be complete.

    A failure at any point leaves files that are not committed hidden; they are never finished files.
    """

    def __init__(
        self,
        context: WriterContext,
        base_path: Path,
        encoder: Encoder,
        bucket_assigner: BucketAssigner,
        rolling_policy: RollingPolicy,
        output_file_config: OutputFileConfig,
        bucket_check_interval_ms: int,
        clock: Clock,
    ) -> None:
        self._base_path = base_path
        self._encoder = encoder
        self._assigner = bucket_assigner
        self._policy = rolling_policy
        self._clock = clock
        self._check_interval_ms = bucket_check_interval_ms
        # A new id for each attempt: a part file of an earlier one, committed or not, is never touched.
        self._name_start = f"{output_file_config.part_prefix}-{context.subtask_index}-{uuid.uuid4().hex[:12]}"
        self._name_end = output_file_config.part_suffix
        self._part_count = 0
        self._parts: dict[str, PartFile] = {}
        self._pending: list[PendingFile] = []
        self._checked_ms = self._now_ms()
        self._input_ended = False

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Encodes and writes records, each into its bucket."""
        if not values:
            return
        now_ms = self._now_ms()
        self._roll_old_parts(now_ms)
        bucket_id = self._assigner.get_common_bucket_id(now_ms)
        if bucket_id is not None:
            self._write_to_bucket(bucket_id, values, now_ms)
            return
        buckets: dict[str, list[Any]] = {}
        for index, value in enumerate(values):
            context = BucketAssigner.Context(now_ms, None if timestamps is None else timestamps[index])
            buckets.setdefault(self._assigner.get_bucket_id(value, context), []).append(value)
        for bucket_id, bucket_values in buckets.items():
            self._write_to_bucket(bucket_id, bucket_values, now_ms)

    def flush(self, end_of_input: bool) -> None:
        """Makes every part file pending."""
        for bucket_id in list(self._parts):
            self._roll(bucket_id)
        if end_of_input:
            self._input_ended = True

    def prepare_commit(self) -> list[PendingFile]:
        """Hands over the pending files."""
        pending, self._pending = self._pending, []
        return pending

    def close(self) -> None:
        """After the end of the input commits what nobody asked for; otherwise leaves it hidden."""
        for part in self._parts.values():
            part.abandon()
        self._parts.clear()
        if self._input_ended:
            FileCommitter().commit(self.prepare_commit())

    def _write_to_bucket(self, bucket_id: str, values: Sequence[Any], now_ms: int) -> None:
        index = 0
        while index < len(values):
            part = self._parts.get(bucket_id)
            if part is not None and self._policy.should_roll_on_event(part.size):
                self._roll(bucket_id)
                part = None
            if part is None:
                part = self._open_part(bucket_id, now_ms)
            # Close to the size at which to roll, record by record, so that no file takes a record too many.
            step = 1 if self._policy.should_roll_on_event(part.size + CAREFUL_BYTES) else SLICE_RECORDS
            part.write(self._encoder, values[index : index + step], now_ms)
            index += step

    def _open_part(self, bucket_id: str, now_ms: int) -> PartFile:
        relative = PurePosixPath(bucket_id)
        if relative.is_absolute() or ".." in relative.parts:
            raise FileWriteError(
                f"The bucket '{bucket_id}' is not beneath the base path '{self._base_path}'.",
                path=bucket_id,
                hint="A BucketAssigner returns a relative path without '..'.",
            )
        name = f"{self._name_start}-{self._part_count}{self._name_end}"
        self._part_count += 1
        part = self._parts[bucket_id] = PartFile(self._base_path / relative, name, now_ms)
        return part

    def _roll(self, bucket_id: str) -> None:
        self._pending.append(self._parts[bucket_id].finish())
        del self._parts[bucket_id]

    def _roll_old_parts(self, now_ms: int) -> None:
        if now_ms - self._checked_ms < self._check_interval_ms:
            return
        self._checked_ms = now_ms
        for bucket_id, part in list(self._parts.items()):
            if self._policy.should_roll_on_processing_time(now_ms - part.created_ms, now_ms - part.written_ms):
                self._roll(bucket_id)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


class FileCommitter(Committer[PendingFile]):
    """Gives pending files their final names; a file that has it already is left alone."""

    def commit(self, committables: Sequence[PendingFile]) -> None:
        """Renames, then makes the names durable."""
        for pending in committables:
            try:
                Path(pending.in_progress_path).rename(pending.final_path)
            except FileNotFoundError as error:
                if not Path(pending.final_path).exists():
                    raise FileWriteError(
                        f"The output file '{pending.final_path}' cannot be committed: "
                        f"'{pending.in_progress_path}' is gone.",
                        path=pending.final_path,
                        hint="Files that end in .inprogress must stay for as long as a job can be restored.",
                    ) from error
            except OSError as error:
                raise FileWriteError(
                    f"The output file '{pending.final_path}' cannot be committed: {error.strerror or error}.",
                    path=pending.final_path,
                ) from error
        for directory in {os.path.dirname(pending.final_path) for pending in committables}:  # noqa: PTH120 - a set of str
            _sync_directory(directory)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
