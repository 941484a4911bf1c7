"""The writer of a FileSink."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from firesteel.common.errors import FileWriteError
from firesteel.connectors.base.rate_limiter import Clock
from firesteel.connectors.files.compaction import (
    COMPACTED_PREFIX,
    Compaction,
    ConcatFileCompactor,
    FileCompactor,
    FileCompactStrategy,
    HeldFile,
)
from firesteel.connectors.files.part_file import STAGING
from firesteel.connectors.files.part_store import PartFile, PartStore
from firesteel.connectors.files.sink_policies import BucketAssigner, OutputFileConfig, RollingPolicy
from firesteel.spi.sink import SinkWriter, WriterContext

__all__ = ["FileSinkWriter"]

CAREFUL_BYTES = 1024 * 1024


class FileSinkWriter(SinkWriter[Any]):
    """Writes one subtask's part files, at most one at a time in each bucket.

    1. *In progress*: a record goes into its bucket's part file, which is hidden. What 4 needs is tried before the first
       record: a bucket for which there is no place fails the task, and not the commit.
    2. *Pending*: a part file that the policy rolls takes no more records. It is complete, still hidden. At the
       end of the input every part file becomes pending; those of bulk formats do at every checkpoint.
    3. At a checkpoint ``prepare_commit`` hands over the pending files, which are durable. Files still in progress are
       made durable, and ``snapshot_state`` notes how long they are.
    4. *Finished*: once the checkpoint is complete, the committer gives the pending files their final names.

    After a failure:

    5. Pending files of the checkpoint are finished, by the subtasks that got them, whether that happened before or not.
    6. A file that was in progress is cut back to the length it had at the checkpoint. The cut is made by copying:
       nothing that the attempt before still does can reach the copy. One file of each bucket is then written on; where
       there are several, because there are fewer subtasks than before, the others become pending.
    7. Other files of the previous attempt belong to no checkpoint. They stay hidden, and are deleted as soon as
       that is certain for the files of all subtasks: with the first checkpoint that completes.

    So a reader of the directory sees every record of completed checkpoints once, apart from those still in progress,
    and no others. See S3PartStore for how a file is hidden, and 5 to 7 are done, in S3.

    A part file's name has its subtask, an id that each writer draws for itself, and a number: subtasks,
    attempts and jobs that write to the same directory never meet.
    """

    def __init__(
        self,
        context: WriterContext,
        store: PartStore,
        slice_records: int,
        bucket_assigner: BucketAssigner,
        rolling_policy: RollingPolicy,
        output_file_config: OutputFileConfig,
        bucket_check_interval_ms: int,
        clock: Clock,
        restored: Sequence[Any] | None = None,
        compaction: tuple[FileCompactStrategy, FileCompactor] | None = None,
    ) -> None:
        self._store = store
        self._slice_records = slice_records
        self._assigner = bucket_assigner
        self._policy = rolling_policy
        self._clock = clock
        self._check_interval_ms = bucket_check_interval_ms
        self._name_start = f"{output_file_config.part_prefix}-{store.writer_id}"
        self._name_end = output_file_config.part_suffix
        self._parallelism = context.parallelism
        self._part_count = 0
        self._parts: dict[str, PartFile] = {}
        self._pending: list[PartFile] = []
        self._compaction: Compaction | None = None
        self._compactor: FileCompactor = ConcatFileCompactor()
        if compaction is not None:
            strategy, self._compactor = compaction
            self._compaction = Compaction(strategy, self._compact)
        self._no_longer_held: list[HeldFile] = []
        self._has_ended = False
        self._checked_ms = self._now_ms()
        self._first_snapshot: int | None = None
        # one subtask does it for all
        is_first = context.attempt_number == 0 and restored is None
        self._has_to_clean = context.subtask_index == 0 and not is_first
        if restored is None:
            self._clean(of_all_leaders=False)
            return
        try:
            self._resume(restored)
        except BaseException:
            self.close()
            raise

    def has_room(self) -> bool:
        """False while too much waits to be stored."""
        return self._store.has_room()

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Encodes and writes records, each into its bucket."""
        if not values:
            return
        self._store.check()
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
        """Makes part files pending: all at the end of the input, at a checkpoint those that the policy rolls."""
        self._has_ended = end_of_input
        if not end_of_input:
            self._roll_old_parts(self._now_ms())
        for bucket_id, part in list(self._parts.items()):
            if end_of_input or part.is_full or self._policy.should_roll_on_checkpoint(part.size):
                self._roll(bucket_id)

    def roll_bucket(self, bucket_id: str) -> None:
        """Makes the part file of a bucket pending, if there is one in progress."""
        if bucket_id in self._parts:
            self._roll(bucket_id)

    def prepare_commit(self) -> list[Any]:
        """Hands over the pending files, once they are durable."""
        compaction = self._compaction
        committables: list[Any] = []
        for part in self._pending:
            if part.must_be_held if compaction is None else part.can_be_held:
                self._hold(part.to_held())
            else:
                committables.append(part.to_committable())
        committables += [self._compact([file]) for file in self._no_longer_held]
        self._no_longer_held.clear()
        if compaction is not None:
            committables += compaction.compact_due(end_of_input=self._has_ended)
        self._store.sync()
        self._pending.clear()
        return committables

    def _compact(self, files: Sequence[HeldFile]) -> Any:
        name = PurePosixPath(files[0].final_path).name
        return self._store.compact(
            files, self._directory(files[0].bucket_id), f"{COMPACTED_PREFIX}{name}", self._compactor, self._now_ms()
        )

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        """The files in progress, as far as they are written."""
        if self._first_snapshot is None:
            self._first_snapshot = checkpoint_id
        held = [] if self._compaction is None else self._compaction.held()
        return [*held, *(part.persist(self._parallelism) for part in self._parts.values())]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """After the first checkpoint of this attempt deletes what earlier attempts have left."""
        if self._first_snapshot is not None and checkpoint_id >= self._first_snapshot:
            self._clean(of_all_leaders=True)

    def close(self) -> None:
        """Leaves what is not finished hidden."""
        for part in (*self._parts.values(), *self._pending):
            part.abandon()
        self._parts.clear()
        self._pending.clear()
        self._store.close()

    def _resume(self, restored: Sequence[Any]) -> None:
        now_ms = self._now_ms()
        for state in restored:
            if isinstance(state, HeldFile):
                self._hold(self._store.resume_held(state))
                continue
            part = self._store.resume(state, self._directory(state.bucket_id), self._new_name(), now_ms)
            # at another parallelism the next records of its keys may come elsewhere, and must not be visible before it
            if state.bucket_id in self._parts or state.parallelism != self._parallelism:
                part.finish()
                self._pending.append(part)
            else:
                self._parts[state.bucket_id] = part

    def _hold(self, file: HeldFile) -> None:
        if self._compaction is None:  # since the job was stopped the sink has ceased to compact
            self._no_longer_held.append(file)
        else:
            self._compaction.hold(file)

    def _clean(self, *, of_all_leaders: bool) -> None:
        if self._has_to_clean:
            self._has_to_clean = not of_all_leaders
            self._store.delete_earlier_attempts(of_all_leaders=of_all_leaders)

    def _write_to_bucket(self, bucket_id: str, values: Sequence[Any], now_ms: int) -> None:
        index = 0
        while index < len(values):
            part = self._parts.get(bucket_id)
            if part is not None and (part.is_full or self._policy.should_roll_on_event(part.size)):
                self._roll(bucket_id)
                part = None
            if part is None:
                part = self._create(bucket_id, values[index], now_ms)
                self._parts[bucket_id] = part
            # Close to the size at which to roll, record by record, so that no file takes a record too many.
            step = 1 if self._policy.should_roll_on_event(part.size + CAREFUL_BYTES) else self._slice_records
            part.write(values[index : index + step], now_ms)
            index += step

    def _create(self, bucket_id: str, record: Any, now_ms: int) -> PartFile:
        """The first part file of a bucket, or its next one; ``record`` is the first that goes there."""
        try:
            return self._store.create(bucket_id, self._directory(bucket_id), self._new_name(), now_ms)
        except FileWriteError as error:
            message = f"{error.message} The record {record!r:.200} was to go there."
            raise FileWriteError(message, path=error.path, hint=error.hint) from error

    def _directory(self, bucket_id: str) -> str:
        if not isinstance(bucket_id, str):
            raise FileWriteError(
                f"The bucket {bucket_id!r} is not a str.",
                path=self._store.base_path,
                hint="A BucketAssigner returns a relative path.",
            )
        relative = PurePosixPath(bucket_id)
        if relative.is_absolute() or ".." in relative.parts or relative.parts[:1] == (STAGING,):
            raise FileWriteError(
                f"The bucket '{bucket_id}' is not beneath the base path '{self._store.base_path}'.",
                path=bucket_id,
                hint=f"A BucketAssigner returns a relative path without '..'; '{STAGING}' is the sink's own.",
            )
        return "" if bucket_id in ("", ".") else str(relative)

    def _new_name(self) -> str:
        name = f"{self._name_start}-{self._part_count}{self._name_end}"
        self._part_count += 1
        return name

    def _roll(self, bucket_id: str) -> None:
        part = self._parts[bucket_id]
        part.finish()
        del self._parts[bucket_id]
        self._pending.append(part)

    def _roll_old_parts(self, now_ms: int) -> None:
        if 0 <= now_ms - self._checked_ms < self._check_interval_ms:
            return
        self._checked_ms = now_ms
        for bucket_id, part in list(self._parts.items()):
            # a clock that was set back must not keep a file open for as long again
            part.created_ms, part.written_ms = min(part.created_ms, now_ms), min(part.written_ms, now_ms)
            if self._policy.should_roll_on_processing_time(now_ms - part.created_ms, now_ms - part.written_ms):
                self._roll(bucket_id)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
