"""A sink that writes records into part files beneath a directory, each visible only once it is finished."""

from __future__ import annotations

import os
import time
from typing import Any

from firesteel.common.connector import DeliveryGuarantee, Sink, WriterContext
from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import Encoder
from firesteel.connectors.file_committer import FileCommitter
from firesteel.connectors.file_sink_policies import (
    BucketAssigner,
    DateTimeBucketAssigner,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.connectors.file_writer import FileWriter
from firesteel.connectors.local_paths import to_local_path
from firesteel.connectors.part_file import InProgressFile, PendingFile
from firesteel.connectors.rate_limiter import Clock

__all__ = [
    "BucketAssigner",
    "DefaultRollingPolicy",
    "FileSink",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "PendingFile",
    "RollingPolicy",
]


class FileSink(Sink):
    """Writes each record with an encoder into the part file of its bucket.

    A part file is hidden while it is written (``.part-<subtask>-<id>-<n>.inprogress``, beneath the directory
    ``.inprogress``) and while it waits to be committed; committing gives it its final name in one step. The id is new
    for each writer, so no run overwrites another's files. Files are committed with the checkpoint after they were
    rolled, and after the end of the input; without checkpoints, then only.

    What is visible is exactly-once at every moment, also while a job fails and recovers; see :class:`FileWriter` for
    how. A job can be restored only as long as its hidden files are there. They are deleted when no checkpoint of the
    job needs them; those of a job that ended by failure or cancellation are left, since it may be restored from a
    checkpoint or savepoint. When that is out of the question, ``.inprogress`` can be deleted. An older checkpoint than
    the last can be restored unless files it has in progress have been finished since. Start with ``for_row_format``.
    """

    name = "File Sink"

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        encoder: Encoder,
        *,
        bucket_assigner: BucketAssigner | None = None,
        rolling_policy: RollingPolicy | None = None,
        output_file_config: OutputFileConfig | None = None,
        bucket_check_interval: int = 60 * 1000,
        clock: Clock = time.time,
    ) -> None:
        self.base_path = to_local_path(base_path)
        if self.base_path.exists() and not self.base_path.is_dir():
            raise InvalidProgramError(f"FileSink: '{self.base_path}' is not a directory.")
        if bucket_check_interval <= 0:
            raise InvalidProgramError(f"FileSink: bucket_check_interval must be positive, not {bucket_check_interval}.")
        self.encoder = encoder
        self.bucket_assigner = bucket_assigner or DateTimeBucketAssigner()
        self.rolling_policy = rolling_policy or DefaultRollingPolicy()
        self.output_file_config = output_file_config or OutputFileConfig()
        self.bucket_check_interval = bucket_check_interval
        self.clock = clock

    def __repr__(self) -> str:
        return f"FileSink({self.base_path}, buckets by {self.bucket_assigner!r})"

    @staticmethod
    def for_row_format(base_path: str | os.PathLike[str], encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Begins a sink that writes record after record."""
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str | os.PathLike[str], writer_factory: Any) -> FileSink.RowFormatBuilder:
        """Not there yet: bulk formats such as Parquet."""
        raise NotImplementedError("FileSink.for_bulk_format: there are no bulk formats yet")

    def create_writer(self, context: WriterContext) -> FileWriter:
        """A writer with part files of its own."""
        return self._writer(context, None)

    def restore_writer(self, context: WriterContext, state: list[InProgressFile]) -> FileWriter:
        """A writer that goes on with files that were in progress."""
        return self._writer(context, state)

    def _writer(self, context: WriterContext, restored: list[InProgressFile] | None) -> FileWriter:
        return FileWriter(
            context,
            self.base_path,
            self.encoder,
            self.bucket_assigner,
            self.rolling_policy,
            self.output_file_config,
            self.bucket_check_interval,
            self.clock,
            restored,
        )

    def create_committer(self) -> FileCommitter:
        """The committer that gives part files their final names."""
        return FileCommitter()

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """Each record ends in exactly one finished file, if there are checkpoints."""
        return DeliveryGuarantee.EXACTLY_ONCE

    class RowFormatBuilder:
        """Configures a FileSink that writes record after record."""

        def __init__(self, base_path: str | os.PathLike[str], encoder: Encoder) -> None:
            self._base_path = base_path
            self._encoder = encoder
            self._options: dict[str, Any] = {}

        def with_bucket_check_interval(self, interval: int) -> FileSink.RowFormatBuilder:
            """Sets how many milliseconds apart part files are checked for age, while writing and at checkpoints."""
            self._options["bucket_check_interval"] = interval
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSink.RowFormatBuilder:
            """Sets which directory a record goes to; by default one for each hour."""
            self._options["bucket_assigner"] = bucket_assigner
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.RowFormatBuilder:
            """Sets when a new part file is begun."""
            self._options["rolling_policy"] = rolling_policy
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.RowFormatBuilder:
            """Sets what part files are called."""
            self._options["output_file_config"] = output_file_config
            return self

        def enable_compact(self, strategy: Any, compactor: Any) -> FileSink.RowFormatBuilder:
            """Not there yet: joining small part files."""
            raise NotImplementedError("FileSink.enable_compact is not there yet")

        def disable_compact(self) -> FileSink.RowFormatBuilder:
            """Does not join small part files; this is the default."""
            return self

        def build(self) -> FileSink:
            """The sink."""
            return FileSink(self._base_path, self._encoder, **self._options)
