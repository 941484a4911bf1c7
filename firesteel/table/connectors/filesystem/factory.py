"""The options of the connector ``filesystem``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from firesteel.common.time import Duration
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOptions
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext, check_options
from firesteel.table.connector.format import BUILT_IN_FORMATS, FormatFactory, find_format
from firesteel.table.connector.options import option_of
from firesteel.table.connectors.filesystem import orc_files, parquet_files
from firesteel.table.connectors.filesystem.avro_files import CODEC, AvroFiles
from firesteel.table.connectors.filesystem.bulk_files import BulkFiles
from firesteel.table.connectors.filesystem.orc_files import OrcFiles
from firesteel.table.connectors.filesystem.parquet_files import ParquetFiles
from firesteel.table.connectors.filesystem.partition_commits import CommitTrigger
from firesteel.table.connectors.filesystem.partitions import Partitioning
from firesteel.table.connectors.filesystem.sink import FileSystemTableSink, Rolling
from firesteel.table.connectors.filesystem.source import FileSystemTableSource
from firesteel.table.connectors.sinks import PARALLELISM
from firesteel.table.values.zones import find_zone

__all__ = ["FACTORY"]

_key = ConfigOptions.key
MONITOR_INTERVAL = _key("source.monitor-interval").duration_type().no_default_value()
DEFAULT_NAME = _key("partition.default-name").string_type().default_value("__DEFAULT_PARTITION__")
FILE_SIZE = _key("sink.rolling-policy.file-size").memory_type().default_value(MemorySize(128 * 1024 * 1024))
ROLLOVER = _key("sink.rolling-policy.rollover-interval").duration_type().default_value(Duration.of_minutes(30))
INACTIVITY = _key("sink.rolling-policy.inactivity-interval").duration_type().default_value(Duration.of_minutes(30))
CHECK = _key("sink.rolling-policy.check-interval").duration_type().default_value(Duration.of_minutes(1))
AUTO_COMPACTION = _key("auto-compaction").boolean_type().default_value(False)
COMPACTION_SIZE = _key("compaction.file-size").memory_type().no_default_value()
TRIGGER = _key("sink.partition-commit.trigger").string_type().default_value("process-time")
DELAY = _key("sink.partition-commit.delay").duration_type().default_value(Duration.of_millis(0))
POLICY = _key("sink.partition-commit.policy.kind").string_type().no_default_value()
WATERMARK_ZONE = _key("sink.partition-commit.watermark-time-zone").string_type().default_value("UTC")
EXTRACTOR = _key("partition.time-extractor.kind").string_type().default_value("default")
TIME_PATTERN = _key("partition.time-extractor.timestamp-pattern").string_type().no_default_value()
TIME_FORMATTER = _key("partition.time-extractor.timestamp-formatter").string_type().no_default_value()
SUCCESS_FILE = _key("sink.partition-commit.success-file.name").string_type().default_value("_SUCCESS")
_OPTIONS = (
    MONITOR_INTERVAL,
    DEFAULT_NAME,
    FILE_SIZE,
    ROLLOVER,
    INACTIVITY,
    CHECK,
    AUTO_COMPACTION,
    COMPACTION_SIZE,
    TRIGGER,
    DELAY,
    POLICY,
    WATERMARK_ZONE,
    EXTRACTOR,
    TIME_PATTERN,
    TIME_FORMATTER,
    SUCCESS_FILE,
    PARALLELISM,
)
_TRIGGERS = ("process-time", "partition-time")
_BULK_FILES: dict[str, tuple[Callable[[Mapping[str, str]], BulkFiles], str]] = {
    "avro": (AvroFiles.of, CODEC.key),
    "orc": (OrcFiles.of, orc_files.COMPRESSION.key),
    "parquet": (ParquetFiles.of, parquet_files.COMPRESSION.key),
}
"""Formats of files of columns: what makes them of options, and the option of each."""


class _Factory(DynamicTableFactory):
    identifier = "filesystem"
    required_options = ("path", "format")
    optional_options = (
        *(option.key for option in _OPTIONS),
        *(f"{name}." for name in {*BUILT_IN_FORMATS, *_BULK_FILES}),
    )

    def create_source(self, context: FactoryContext) -> FileSystemTableSource:
        options = context.options
        found = self._format(context)
        decoding = found if isinstance(found, BulkFiles) else found[0].create_decoding_format(context, found[1])
        interval = option_of(options, MONITOR_INTERVAL)
        return FileSystemTableSource(
            _path(options),
            context.physical_type,
            decoding,
            _partitioning(context),
            None if interval is None else interval.to_millis(),
        )

    def create_sink(self, context: FactoryContext) -> FileSystemTableSink:
        options = context.options
        found = self._format(context)
        encoding = found if isinstance(found, BulkFiles) else found[0].create_encoding_format(context, found[1])
        rolling = Rolling(
            option_of(options, FILE_SIZE).bytes,
            option_of(options, ROLLOVER).to_millis(),
            option_of(options, INACTIVITY).to_millis(),
            option_of(options, CHECK).to_millis(),
        )
        return FileSystemTableSink(
            _path(options),
            encoding,
            _partitioning(context),
            rolling,
            _success_file(context),
            _compaction_size(options, is_columnar=isinstance(encoding, BulkFiles)),
            option_of(options, PARALLELISM),
            context.is_streaming,
            trigger=_trigger(options),
        )

    def _format(self, context: FactoryContext) -> BulkFiles | tuple[FormatFactory, dict[str, str]]:
        """The format of files of columns, or the factory and the options of a format of messages."""
        own = [option.key for option in _OPTIONS]
        name = context.options["format"]
        if name in _BULK_FILES:
            create, option = _BULK_FILES[name]
            check_options(self.identifier, context.options, self.required_options, [*own, option])
            files = create(context.options)
            files.check_types(_partitioning(context).data_type(context.physical_type))
            return files
        found = find_format(context)
        assert found is not None
        factory, options, keys = found
        check_options(self.identifier, context.options, self.required_options, [*own, *keys])
        return factory, options


def _is_s3(path: str) -> bool:
    return path.startswith(("s3://", "s3a://"))


def _path(options: Mapping[str, str]) -> str:
    path = options["path"]
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path and not _is_s3(path):
        raise ValidationError(f"There is no file system for the path '{path}'.", hint="Use a local path or s3://.")
    return path


def _partitioning(context: FactoryContext) -> Partitioning:
    types = {part.name: part.type for part in context.physical_type.fields}
    keys = context.partition_keys
    return Partitioning(tuple(keys), tuple(types[key] for key in keys), option_of(context.options, DEFAULT_NAME))


def _success_file(context: FactoryContext) -> str | None:
    options = context.options
    kinds = option_of(options, POLICY)
    if kinds is None or (context.is_streaming and not context.partition_keys):
        return None
    if "metastore" in kinds.split(","):
        raise ValidationError(
            "Can not configure a 'metastore' partition commit policy for a file system table. You can only configure "
            "'metastore' partition commit policy for a hive table."
        )
    if {kind.strip() for kind in kinds.split(",")} != {"success-file"}:
        raise ValidationError(
            f"The partition commit policy '{kinds}' is not supported.", hint="Known policy: success-file."
        )
    if _is_s3(options["path"]):
        raise ValidationError("Partition commit policies are supported for local paths only.")
    return option_of(options, SUCCESS_FILE)


def _trigger(options: Mapping[str, str]) -> CommitTrigger:
    kind, zone = option_of(options, TRIGGER), option_of(options, WATERMARK_ZONE)
    if kind not in _TRIGGERS:
        raise ValidationError(
            f"Invalid value for option '{TRIGGER.key}'.\n\nCould not parse value '{kind}' for key '{TRIGGER.key}'.",
            hint=f"Expected one of: {', '.join(_TRIGGERS)}.",
        )
    if option_of(options, EXTRACTOR) != "default":
        raise ValidationError(f"The option '{EXTRACTOR.key}' supports 'default' only.")
    try:
        find_zone(zone)
    except ValueError as error:
        raise ValidationError(f"Invalid value for option '{WATERMARK_ZONE.key}'.\n\n{error}") from None
    return CommitTrigger(
        kind == "partition-time",
        option_of(options, DELAY).to_millis(),
        option_of(options, TIME_PATTERN),
        option_of(options, TIME_FORMATTER),
        zone,
    )


def _compaction_size(options: Mapping[str, str], *, is_columnar: bool) -> int | None:
    if not option_of(options, AUTO_COMPACTION):
        return None
    if is_columnar:
        raise ValidationError("'auto-compaction' is supported for formats of lines only, not for files of columns.")
    size = option_of(options, COMPACTION_SIZE)
    return option_of(options, FILE_SIZE).bytes if size is None else size.bytes


FACTORY = _Factory()
