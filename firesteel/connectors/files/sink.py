"""A sink that writes records into part files beneath a directory, each visible only once it is finished."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import BulkWriterFactory, Encoder
from firesteel.connectors.base.rate_limiter import Clock
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.part_content import BulkContent, ContentFormat, RowContent
from firesteel.connectors.files.part_file import LocalPartStore, PendingFile
from firesteel.connectors.files.part_store import PartStore
from firesteel.connectors.files.sink_policies import (
    BucketAssigner,
    CheckpointRollingPolicy,
    DateTimeBucketAssigner,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.connectors.files.writer import FileSinkWriter
from firesteel.filesystem.local_paths import to_local_path
from firesteel.filesystem.s3_uploads import S3Object, is_s3_path
from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, WriterContext

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BucketAssigner",
    "DefaultRollingPolicy",
    "FileSink",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "PendingFile",
    "RollingPolicy",
    "StreamingFileSink",
]


class FileSink(Sink):
    """Writes each record, with an encoder or a bulk writer, into the part file of its bucket.

    On the local disk a part file is hidden while it is written (``.part-<subtask>-<id>-<n>.inprogress``, beneath the
    directory ``.inprogress``) and while it waits to be committed; committing gives it its final name in one step. In S3
    (``s3://bucket/directory``) it is a multipart upload, which is not visible before it is completed. Ids are new for
    each writer, so no run overwrites another's files. Files are committed with the checkpoint after they were rolled,
    and after the end of the input; without checkpoints, then only.

    What is visible is exactly-once at every moment, also while a job fails and recovers; see :class:`FileWriter` for
    how. A job can be restored only as long as its hidden files or uploads are there. They are deleted when no
    checkpoint of the job needs them; those of a job that ended by failure or cancellation are left, since it may be
    restored from a checkpoint or savepoint. When that is out of the question, ``.inprogress`` can be deleted, and the
    uploads aborted. An older checkpoint than the last can be restored unless files it has in progress have been
    finished since. Start with ``for_row_format`` or ``for_bulk_format``.
    """

    name = "File Sink"

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        content: Encoder | ContentFormat,
        *,
        bucket_assigner: BucketAssigner | None = None,
        rolling_policy: RollingPolicy | None = None,
        output_file_config: OutputFileConfig | None = None,
        bucket_check_interval: int = 60 * 1000,
        clock: Clock = time.time,
        compaction: tuple[FileCompactStrategy, FileCompactor] | None = None,
    ) -> None:
        self.base_path = _to_base_path(base_path)
        if bucket_check_interval <= 0:
            raise InvalidProgramError(f"FileSink: bucket_check_interval must be positive, not {bucket_check_interval}.")
        self.content = content if isinstance(content, ContentFormat) else RowContent(content)
        self.bucket_assigner = bucket_assigner or DateTimeBucketAssigner()
        is_bulk = isinstance(self.content, BulkContent)
        self.rolling_policy = rolling_policy or (OnCheckpointRollingPolicy() if is_bulk else DefaultRollingPolicy())
        if is_bulk and not isinstance(self.rolling_policy, CheckpointRollingPolicy):
            raise InvalidProgramError(
                f"FileSink: {type(self.rolling_policy).__name__} does not roll at every checkpoint, but a file of a "
                "bulk format cannot stay open over one.",
                hint="Use RollingPolicy.on_checkpoint_rolling_policy(), or a subclass of CheckpointRollingPolicy.",
            )
        self.output_file_config = output_file_config or OutputFileConfig()
        self.bucket_check_interval = bucket_check_interval
        self.clock = clock
        self.compaction = compaction

    def __repr__(self) -> str:
        return f"FileSink({self.base_path}, buckets by {self.bucket_assigner!r})"

    def with_text(self, to_text: Callable[[Any], str]) -> FileSink:
        """Returns a sink that writes the text of records as the function gives it, if its encoder writes text."""
        sink = copy(self)
        sink.content = self.content.with_text(to_text)
        return sink

    @staticmethod
    def for_row_format(base_path: str | os.PathLike[str], encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Begins a sink that writes record after record."""
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> FileSink.BulkFormatBuilder:
        """Begins a sink that writes whole files, such as Parquet; they are rolled at every checkpoint."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise InvalidProgramError(f"for_bulk_format needs a BulkWriterFactory, not {writer_factory!r}.")
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    def create_writer(self, context: WriterContext) -> FileSinkWriter:
        """A writer with part files of its own."""
        return self._writer(context, None)

    def restore_writer(self, context: WriterContext, state: list[Any]) -> FileSinkWriter:
        """A writer that continues files that were in progress."""
        return self._writer(context, state)

    def _writer(self, context: WriterContext, restored: list[Any] | None) -> FileSinkWriter:
        config, suffix = self.output_file_config, self.content.suffix
        if not config.part_suffix.endswith(suffix):
            config = OutputFileConfig(config.part_prefix, config.part_suffix + suffix)
        return FileSinkWriter(
            context,
            self._store(context),
            self.content.slice_records,
            self.bucket_assigner,
            self.rolling_policy,
            config,
            self.bucket_check_interval,
            self.clock,
            restored,
            self.compaction,
        )

    def _store(self, context: WriterContext) -> PartStore:
        if isinstance(self.base_path, Path):
            return LocalPartStore(context, self.base_path, self.content)
        from firesteel.connectors.files.s3_part_file import S3PartStore

        return S3PartStore(context, self.base_path, self.content, compacts=self.compaction is not None)

    def get_transformer(self) -> None:
        """Returns None: what records become before they are written is up to the format."""

    def create_committer(self) -> Committer[Any]:
        """The committer that makes part files visible."""
        if isinstance(self.base_path, Path):
            return FileCommitter()
        from firesteel.connectors.files.s3_committer import UploadCommitter

        return UploadCommitter(self.base_path)

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """Each record ends in exactly one finished file, if there are checkpoints."""
        return DeliveryGuarantee.EXACTLY_ONCE

    class BaseBuilder:
        """What the builders share."""

        def __init__(self, base_path: str | os.PathLike[str], content: ContentFormat) -> None:
            self._base_path = base_path
            self._content = content
            self._options: dict[str, Any] = {}

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Sets how many milliseconds apart part files are checked for age, while writing and at checkpoints."""
            self._options["bucket_check_interval"] = interval
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Sets which directory a record goes to; by default one for each hour."""
            self._options["bucket_assigner"] = bucket_assigner
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Sets when a new part file is begun."""
            self._options["rolling_policy"] = rolling_policy
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Sets what part files are called."""
            self._options["output_file_config"] = output_file_config
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
            """Makes one file of the small files of a subtask and bucket before they become visible."""
            if not isinstance(strategy, FileCompactStrategy) or not isinstance(compactor, FileCompactor):
                raise TypeError(
                    "enable_compact needs a FileCompactStrategy and a FileCompactor, "
                    f"got {strategy!r} and {compactor!r}."
                )
            self._options["compaction"] = (strategy, compactor)
            return self

        def disable_compact(self) -> Self:
            """Does not compact files; this is the default."""
            self._options.pop("compaction", None)
            return self

        def build(self) -> FileSink:
            """The sink."""
            return FileSink(self._base_path, self._content, **self._options)

    class RowFormatBuilder(BaseBuilder):
        """Configures a FileSink that writes record after record."""

        def __init__(self, base_path: str | os.PathLike[str], encoder: Encoder) -> None:
            super().__init__(base_path, RowContent(encoder))
            self._encoder = encoder

        def with_compression(self, compression: str | None) -> Self:
            """Compresses the files: ``gzip``, whose names then end in ``.gz``; not in Flink."""
            self._content = RowContent(self._encoder, compression)
            return self

    class BulkFormatBuilder(BaseBuilder):
        """Configures a FileSink that writes whole files; its rolling policy must be a CheckpointRollingPolicy."""

        def __init__(self, base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory) -> None:
            super().__init__(base_path, BulkContent(writer_factory))


class StreamingFileSink(FileSink):
    """The former name of `FileSink` in Flink, for ``add_sink``."""

    @staticmethod
    def for_row_format(
        base_path: str | os.PathLike[str], encoder: Encoder
    ) -> StreamingFileSink.DefaultRowFormatBuilder:
        """Begins a sink that writes record after record."""
        return StreamingFileSink.DefaultRowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """Begins a sink that writes whole files."""
        return StreamingFileSink.DefaultBulkFormatBuilder(base_path, writer_factory)

    class BaseBuilder(FileSink.BaseBuilder):
        """What the builders share."""

        def with_rolling_policy(self, policy: RollingPolicy) -> Self:
            """Sets when a new part file is begun."""
            return super().with_rolling_policy(policy)

    class DefaultRowFormatBuilder(BaseBuilder, FileSink.RowFormatBuilder):
        """Configures a sink that writes record after record."""

    class DefaultBulkFormatBuilder(BaseBuilder, FileSink.BulkFormatBuilder):
        """Configures a sink that writes whole files."""


def _to_base_path(path: str | os.PathLike[str]) -> Path | S3Object:
    text = os.fspath(path)
    if is_s3_path(text):
        return S3Object.parse(text)
    local = to_local_path(path)
    if local.exists() and not local.is_dir():
        raise InvalidProgramError(f"FileSink: '{local}' is not a directory.")
    return local
