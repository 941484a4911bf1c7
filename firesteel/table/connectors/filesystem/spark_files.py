"""Files of a table that Spark reads itself in bounded queries.

Parquet and ORC files are read by Spark's readers if the columns of all files have the types that the table declares, so
that no value is converted. Lines are read by Spark's reader of text and decoded by the format of the table. Everything
else, such as quoted CSV, whose values may have several lines, is read by a job of Firesteel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.filesystem.input_paths import find_input_files, to_input_path
from firesteel.formats.compression import is_compressed
from firesteel.table.connector.format import DecodingFormat
from firesteel.table.connectors.filesystem.bulk_files import BulkFiles
from firesteel.table.connectors.filesystem.partitions import values_of_path
from firesteel.table.evaluation.spark_text import spark_type
from firesteel.table.formats.csv.factory import CsvDecodingFormat
from firesteel.table.names import quoted
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import arrow_type, columns_schema

if TYPE_CHECKING:
    from firesteel.table.connectors.filesystem.source import FileSystemTableSource

__all__ = ["SparkFiles", "spark_read"]

_GLOBS = frozenset("*?[]{}\\,")
_PARTITION_TYPES = (
    t.CharType,
    t.VarCharType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.BooleanType,
    t.DateType,
)
_MAX_CHECKED = 200
"""Of so many files the types of the columns are compared; of others Spark reports those that it cannot read."""


@dataclass(frozen=True)
class SparkFiles:
    """The files of a table, and how Spark reads them."""

    source: FileSystemTableSource
    files: tuple[str, ...]

    def describe(self) -> str:
        """What EXPLAIN shows."""
        if isinstance(self.source.format, BulkFiles):
            return f"Spark ({self.source.format.name}), {_count(self.files)}"
        return f"Spark (text, decoded by the format of the table), {_count(self.files)}"

    def dataframe(self, session: Any) -> Any:
        """The rows, with the columns of the source."""
        source, keys = self.source, self.source.partitioning.keys
        data_type = source.data_type
        reader = session.read
        if keys:
            reader = reader.option("basePath", str(to_input_path(source.path)))
        texts = [f"{quoted(key)} STRING" for key in keys]
        if isinstance(source.format, BulkFiles):
            schema = [f"{quoted(part.name)} {spark_type(part.type)}" for part in data_type.fields]
            reader = reader.option("datetimeRebaseMode", "CORRECTED").schema(", ".join([*schema, *texts]))
            found = reader.format(source.format.name).load(list(self.files))
        else:
            lines = reader.option("lineSep", "\n").schema(", ".join(["value STRING", *texts])).text(list(self.files))
            lines = lines.selectExpr("CAST(value AS BINARY)", *map(quoted, keys))
            schema = [f"{quoted(part.name)} {spark_type(part.type)}" for part in data_type.fields]
            decode = LineDecoder(source.format, data_type)
            found = lines.mapInArrow(decode, ", ".join([*schema, *texts]))
        if not keys:
            return found
        types = dict(zip(keys, source.partitioning.types, strict=True))
        default = source.partitioning.default_name.replace("\\", "\\\\").replace("'", "\\'")
        return found.selectExpr(
            *(
                f"CAST(NULLIF({quoted(name)}, '{default}') AS {spark_type(types[name])}) AS {quoted(name)}"
                if name in types
                else quoted(name)
                for name in source.type.field_names
            )
        )


def spark_read(source: FileSystemTableSource) -> SparkFiles | str:
    """How Spark reads the files of a table, or the reason why it does not."""
    root = to_input_path(source.path)
    if not isinstance(root, Path):
        return "the files are in a store"
    if source.metadata:
        return "it has metadata columns"
    try:
        files = tuple(str(file) for file in find_input_files(root))
    except FiresteelError as error:
        return str(error).splitlines()[0]
    if not files:
        return "there are no files"
    if any(_GLOBS.intersection(file) for file in files):
        return "Spark takes characters in the names of its files for patterns"
    reason = _other_partitions(source, root, files) or _other_format(source, files)
    return reason or SparkFiles(source, files)


def _count(files: Sequence[str]) -> str:
    return f"{len(files)} file{'' if len(files) == 1 else 's'}"


def _other_partitions(source: FileSystemTableSource, root: Path, files: Sequence[str]) -> str | None:
    """Why Spark would find other values of partitions."""
    partitioning = source.partitioning
    if not partitioning.keys:
        return None
    for key, type_ in zip(partitioning.keys, partitioning.types, strict=True):
        if not isinstance(type_, _PARTITION_TYPES):
            return f"the partition column '{key}' has the type {type_.as_summary_string()}"
    for directory in dict.fromkeys(Path(file).parent for file in files):
        texts = values_of_path(f"{directory.relative_to(root)}/")
        if tuple(texts) != partitioning.keys or len(directory.relative_to(root).parts) != len(partitioning.keys):
            return f"the directory '{directory}' is not one of the partitions {', '.join(partitioning.keys)}"
        for key in partitioning.keys:
            try:
                partitioning.value(texts, key)
            except (FiresteelError, ValueError):
                return f"the directory '{directory}' has no value of '{key}'"
    return None


def _other_format(source: FileSystemTableSource, files: Sequence[str]) -> str | None:
    """Why Spark would read other values from the files."""
    names = source.data_type.field_names
    if len({name.lower() for name in (*names, *source.partitioning.keys)}) < len(source.type.fields):
        return "Spark does not tell apart names of columns that differ in case"
    match source.format:
        case BulkFiles():
            return _other_columns(source, files)
        case CsvDecodingFormat() if source.format.options.quote is not None:
            return "values of CSV in quotes may have several lines"
    compressed = next((file for file in files if is_compressed(file)), None)
    return None if compressed is None else f"'{compressed}' is compressed"


def _other_columns(source: FileSystemTableSource, files: Sequence[str]) -> str | None:
    name = source.format.name if isinstance(source.format, BulkFiles) else ""
    if name not in ("parquet", "orc"):
        return f"Spark has no reader of {name}"
    declared = {part.name: part.type for part in source.data_type.fields}
    folded = {column.lower() for column in declared}
    for file in files[:_MAX_CHECKED]:
        try:
            schema = _schema_of(file, name)
        except (OSError, ValueError) as error:
            return f"the columns of '{file}' are unknown: {error}"
        for part in schema:
            if part.name not in declared and part.name.lower() in folded:
                return f"'{file}' has a column '{part.name}', whose name differs in case"
            if part.name in declared and not _is_alike(part.type, arrow_type(declared[part.name]), name):
                return f"the column '{part.name}' of '{file}' has the type {part.type}"
    return None


def _schema_of(file: str, name: str) -> Any:
    require_pyarrow("SQL")
    if name == "orc":
        import pyarrow.orc

        return pyarrow.orc.ORCFile(file).schema
    import pyarrow.parquet

    return pyarrow.parquet.read_schema(file)


def _is_alike(found: Any, declared: Any, name: str) -> bool:
    """Whether Spark reads a column without converting its values."""
    types = require_pyarrow("SQL").types
    if types.is_timestamp(found):
        # ORC keeps timestamps in the zone of the writer, Parquet's nanoseconds are not Spark's
        is_readable = name == "parquet" and found.unit in ("ms", "us")
        return is_readable and types.is_timestamp(declared) and (found.tz is None) == (declared.tz is None)
    if types.is_fixed_size_binary(found) or types.is_fixed_size_binary(declared):
        return bool(types.is_binary(found) or found == declared)
    if types.is_struct(found):
        if not types.is_struct(declared):
            return False
        fields = {part.name: part.type for part in found}
        return all(part.name in fields and _is_alike(fields[part.name], part.type, name) for part in declared)
    if types.is_list(found):
        return bool(types.is_list(declared)) and _is_alike(found.value_type, declared.value_type, name)
    if types.is_map(found):
        return (
            bool(types.is_map(declared))
            and _is_alike(found.key_type, declared.key_type, name)
            and _is_alike(found.item_type, declared.item_type, name)
        )
    return bool(found == declared)


@dataclass(frozen=True)
class LineDecoder:
    """Makes columns of lines, in tasks of Spark; what follows the lines are the texts of partitions."""

    format: DecodingFormat
    row_type: t.RowType

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        pa = require_pyarrow("SQL")
        decoder = self.format.create_decoder(self.row_type)
        schema = columns_schema(self.row_type)
        target = pa.schema([pa.field(part.name, _of_spark(part.type)) for part in schema])
        for batch in batches:
            lines = [(line or b"").removesuffix(b"\r") for line in batch.column(0).to_pylist()]
            places = [place for place, line in enumerate(lines) if line]
            if not places:
                continue
            decoded = decoder.decode([lines[place] for place in places])
            rows = pa.Table.from_batches([decoded.data.select(schema.names)]).cast(target).combine_chunks()
            if decoded.messages is not None:
                places = [places[index] for index in decoded.messages.tolist()]
            arrays = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in rows.columns]
            others = batch.columns[1:]
            if others and len(places) != batch.num_rows:
                others = [column.take(pa.array(places, pa.int64())) for column in others]
            names = [*schema.names, *batch.schema.names[1:]]
            yield pa.RecordBatch.from_arrays([*arrays, *others], names)


def _of_spark(type_: Any) -> Any:
    """The type of Arrow that Spark takes for a type of this engine."""
    pa = require_pyarrow("SQL")
    types = pa.types
    if types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_list(type_):
        return pa.list_(_of_spark(type_.value_type))
    if types.is_map(type_):
        return pa.map_(_of_spark(type_.key_type), _of_spark(type_.item_type))
    if types.is_struct(type_):
        return pa.struct([pa.field(part.name, _of_spark(part.type)) for part in type_])
    return type_
