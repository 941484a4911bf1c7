"""The options of the connector ``filesystem``."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.common.time import Duration
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOptions
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext, check_options
from firesteel.table.connector.format import BUILT_IN_FORMATS, FormatFactory, find_format
from firesteel.table.connector.options import option_of
from firesteel.table.connectors.filesystem.partitions import Partitioning
from firesteel.table.connectors.filesystem.sink import FileSystemTableSink, Rolling
from firesteel.table.connectors.filesystem.source import FileSystemTableSource
from firesteel.table.connectors.sinks import PARALLELISM
from firesteel.table.expressions.errors import ValidationError

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
SUCCESS_FILE = _key("sink.partition-commit.success-file.name").string_type().default_value("_SUCCESS")
COMPRESSION = _key("parquet.compression").string_type().default_value("SNAPPY")
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
    SUCCESS_FILE,
    PARALLELISM,
)
_COMPRESSIONS = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "LZ4": "lz4", "BROTLI": "brotli"}


class _Factory(DynamicTableFactory):
    identifier = "filesystem"
    required_options = ("path", "format")
    optional_options = (*(option.key for option in _OPTIONS), *(f"{name}." for name in (*BUILT_IN_FORMATS, "parquet")))

    def create_source(self, context: FactoryContext) -> FileSystemTableSource:
        options = context.options
        decoding = None
        found = self._format(context)
        if found is not None:
            factory, own = found
            decoding = factory.create_decoding_format(context, own)
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
        encoding = None
        found = self._format(context)
        if found is not None:
            factory, own = found
            encoding = factory.create_encoding_format(context, own)
        rolling = Rolling(
            option_of(options, FILE_SIZE).bytes,
            option_of(options, ROLLOVER).to_millis(),
            option_of(options, INACTIVITY).to_millis(),
            option_of(options, CHECK).to_millis(),
        )
        compression = option_of(options, COMPRESSION).upper()
        if compression not in _COMPRESSIONS:
            raise ValidationError(
                f"Invalid value for option 'parquet.compression'.\n\n'{compression}' is no compression.",
                hint=f"Known: {', '.join(_COMPRESSIONS)}.",
            )
        return FileSystemTableSink(
            _path(options),
            encoding,
            _partitioning(context),
            rolling,
            _success_file(context),
            _compaction_size(options, is_columnar=encoding is None),
            _COMPRESSIONS[compression],
            option_of(options, PARALLELISM),
        )

    def _format(self, context: FactoryContext) -> tuple[FormatFactory, dict[str, str]] | None:
        """The factory and the options of a format of messages; None for Parquet."""
        own = [option.key for option in _OPTIONS]
        if context.options["format"] == "parquet":
            check_options(self.identifier, context.options, self.required_options, [*own, COMPRESSION.key])
            return None
        if context.options["format"] == "avro":
            raise ValidationError(
                "The format 'avro' is supported for messages only, not for files.", hint="Use the format 'parquet'."
            )
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
    if kinds is None:
        return None
    if {kind.strip() for kind in kinds.split(",")} != {"success-file"}:
        raise ValidationError(
            f"The partition commit policy '{kinds}' is not supported.", hint="Known policy: success-file."
        )
    if option_of(options, TRIGGER) != "process-time" or option_of(options, DELAY).to_millis():
        raise ValidationError(
            "Partitions are committed as soon as their files are: other triggers and delays are not supported.",
            hint="Leave out 'sink.partition-commit.trigger' and 'sink.partition-commit.delay'.",
        )
    if _is_s3(options["path"]):
        raise ValidationError("Partition commit policies are supported for local paths only.")
    return option_of(options, SUCCESS_FILE)


def _compaction_size(options: Mapping[str, str], *, is_columnar: bool) -> int | None:
    if not option_of(options, AUTO_COMPACTION):
        return None
    if is_columnar:
        raise ValidationError("'auto-compaction' is supported for formats of lines only, not for parquet.")
    size = option_of(options, COMPACTION_SIZE)
    return option_of(options, FILE_SIZE).bytes if size is None else size.bytes


FACTORY = _Factory()
