"""The writer of a FileSink."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from firesteel.common.connector import SinkWriter, WriterContext
from firesteel.common.serialization import Encoder
from firesteel.connectors.file_sink_policies import BucketAssigner, OutputFileConfig, RollingPolicy
from firesteel.connectors.part_file import (
    FileWriteError,
    InProgressFile,
    PartFile,
    PendingFile,
    StagingDirectory,
    sync_directory,
)
from firesteel.connectors.rate_limiter import Clock

__all__ = ["FileWriter"]

CAREFUL_BYTES = 1024 * 1024
SLICE_RECORDS = 1024


class FileWriter(SinkWriter[PendingFile]):
    """Writes one subtask's part files, at most one at a time in each bucket.

    1. *In progress*: a record goes into its bucket's part file, which is hidden.
    2. *Pending*: a part file that the policy says to roll takes no more records. It is complete, durable, still hidden.
       At the end of the input every part file becomes pending.
    3. At a checkpoint ``prepare_commit`` hands over the pending files. Files still in progress are made durable, and
       ``snapshot_state`` notes how long they are.
    4. *Finished*: once the checkpoint is complete, the committer gives the pending files their final names.

    After a failure:

    5. Pending files of the checkpoint are finished, by the subtasks that got them, whether that happened before or not.
    6. A file that was in progress is cut back to the length it had at the checkpoint. The cut is made by copying:
       nothing that the attempt before still does can reach the copy. One file of each bucket is then written on; where
       there are several, because there are fewer subtasks than before, the others become pending.
    7. Whatever else the attempt before has left belongs to no checkpoint. It stays hidden, and is deleted as soon as
       that is certain for the files of all subtasks: with the first checkpoint that completes.

    So a reader of the directory sees every record of completed checkpoints once, apart from those still in progress,
    and no others. A part file's name has its subtask, an id that each writer draws for itself, and a number: subtasks,
    attempts and jobs that write to the same directory never meet.
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
        restored: Sequence[InProgressFile] | None = None,
    ) -> None:
        self._base_path = base_path
        self._encoder = encoder
        self._assigner = bucket_assigner
        self._policy = rolling_policy
        self._clock = clock
        self._check_interval_ms = bucket_check_interval_ms
        self._name_start = f"{output_file_config.part_prefix}-{context.subtask_index}-{uuid.uuid4().hex[:12]}"
        self._name_end = output_file_config.part_suffix
        self._parallelism = context.parallelism
        self._part_count = 0
        self._parts: dict[str, PartFile] = {}
        self._pending: list[PendingFile] = []
        self._checked_ms = self._now_ms()
        self._staging = StagingDirectory(base_path, context.sink_id, context.attempt_number)
        self._is_unsynced = False
        self._first_snapshot: int | None = None
        # one subtask does it for all
        self._has_to_clean = context.attempt_number > 0 and context.subtask_index == 0
        if restored is None:
            self._clean()
            return
        try:
            self._resume(restored)
        except FileWriteError:
            self.close()
            raise

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
        """Makes part files pending: all at the end of the input, at a checkpoint those that the policy says."""
        if not end_of_input:
            self._roll_old_parts(self._now_ms())
        for bucket_id, part in list(self._parts.items()):
            if end_of_input or self._policy.should_roll_on_checkpoint(part.size):
                self._roll(bucket_id)

    def prepare_commit(self) -> list[PendingFile]:
        """Hands over the pending files."""
        if self._is_unsynced:
            sync_directory(self._staging.directory)
            self._is_unsynced = False
        pending, self._pending = self._pending, []
        return pending

    def snapshot_state(self, checkpoint_id: int) -> list[InProgressFile]:
        """The files in progress, as far as they are written."""
        if self._first_snapshot is None:
            self._first_snapshot = checkpoint_id
        return [part.persist(self._parallelism) for part in self._parts.values()]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """After the first checkpoint of this attempt deletes what earlier attempts have left."""
        if self._first_snapshot is not None and checkpoint_id >= self._first_snapshot:
            self._clean()

    def close(self) -> None:
        """Leaves what is not finished hidden."""
        for part in self._parts.values():
            part.abandon()
        self._parts.clear()
        self._staging.remove_if_empty()

    def _resume(self, restored: Sequence[InProgressFile]) -> None:
        now_ms = self._now_ms()
        for state in restored:
            part = PartFile.resume(self._staging, state, self._new_path(state.bucket_id), now_ms)
            self._is_unsynced = True
            # at another parallelism the next records of its keys may come elsewhere, and must not be visible before it
            if state.bucket_id in self._parts or state.parallelism != self._parallelism:
                self._pending.append(part.finish())
            else:
                self._parts[state.bucket_id] = part

    def _clean(self) -> None:
        if self._has_to_clean:
            self._has_to_clean = False
            self._staging.delete_earlier_attempts()

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
        part = self._parts[bucket_id] = PartFile(self._staging, bucket_id, self._new_path(bucket_id), now_ms)
        self._is_unsynced = True
        return part

    def _new_path(self, bucket_id: str) -> Path:
        """The final path of the next part file."""
        relative = PurePosixPath(bucket_id)
        if relative.is_absolute() or ".." in relative.parts:
            raise FileWriteError(
                f"The bucket '{bucket_id}' is not beneath the base path '{self._base_path}'.",
                path=bucket_id,
                hint="A BucketAssigner returns a relative path without '..'.",
            )
        name = f"{self._name_start}-{self._part_count}{self._name_end}"
        self._part_count += 1
        return self._base_path / relative / name

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
