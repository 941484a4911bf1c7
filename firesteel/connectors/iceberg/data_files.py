"""Iceberg's data files: how they are written, and what a manifest says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.connectors.lakes.parquet_output import ParquetOutput

__all__ = ["data_file", "describe_data_file", "new_data_file", "split_by_partition"]

_FIELDS = (
    "file_path",
    "record_count",
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "split_offsets",
)
_MAPS = _FIELDS[3:9]
_CODEC = "write.parquet.compression-codec"
_CODECS = {"uncompressed": "none"}


def describe_data_file(file: Any) -> dict[str, Any]:
    """A DataFile as plain values, for splits and committables."""
    plain: dict[str, Any] = {name: getattr(file, name) for name in _FIELDS}
    for name in _MAPS:
        plain[name] = None if plain[name] is None else dict(plain[name].items())
    plain["partition"] = tuple(file.partition)
    plain["spec_id"] = file.spec_id
    plain["content"] = file.content.value
    plain["file_format"] = file.file_format.value
    return plain


def data_file(plain: Mapping[str, Any], format_version: int) -> Any:
    """The DataFile of plain values."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    file = DataFile.from_args(
        _table_format_version=format_version,
        content=DataFileContent(plain.get("content", 0)),
        file_format=FileFormat(plain.get("file_format", "PARQUET")),
        partition=Record(*plain["partition"]),
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
        **{name: plain[name] for name in _FIELDS},
    )
    file.spec_id = plain["spec_id"]
    return file


def split_by_partition(table: Any, data: Any) -> Iterable[tuple[Any, Any]]:
    """Rows by the values of the partition fields: a tuple and the rows of each."""
    spec, schema = table.spec(), table.schema()
    if spec.is_unpartitioned():
        return [((), data)]
    names = []
    widened = data
    for index, field in enumerate(spec.fields):
        source = schema.find_field(field.source_id)
        column = _column(data, schema.find_column_name(field.source_id))
        values = _transformed(field.transform, source.field_type, column)
        names.append(f"_partition_{index}")
        widened = widened.append_column(names[-1], values)
    return _groups(widened, names)


def _transformed(transform: Any, type_: Any, column: Any) -> Any:
    from pyiceberg.exceptions import NotInstalledError

    try:
        return transform.pyarrow_transform(type_)(column)
    except NotInstalledError:
        # without pyiceberg_core: each value that occurs, once
        import pyarrow as pa

        encoded = (column.combine_chunks() if hasattr(column, "combine_chunks") else column).dictionary_encode()
        calculate = transform.transform(type_)
        known = pa.array([calculate(_internal(value)) for value in encoded.dictionary.to_pylist()])
        return known.take(encoded.indices)


def _internal(value: Any) -> Any:
    """A value as Iceberg's transforms take it: times are numbers."""
    import datetime as dt

    from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, time_to_micros

    match value:
        case dt.datetime():
            return datetime_to_micros(value.replace(tzinfo=None))
        case dt.date():
            return date_to_days(value)
        case dt.time():
            return time_to_micros(value)
    return value


def _column(data: Any, path: str) -> Any:
    first, *rest = path.split(".") if path not in data.column_names else [path]
    column = data.column(first)
    for name in rest:
        import pyarrow.compute as pc

        column = pc.struct_field(column, name)
    return column


def _groups(data: Any, names: list[str]) -> Iterable[tuple[Any, Any]]:
    import pyarrow as pa

    numbered = data.select(names).append_column("_row", pa.array(range(data.num_rows), pa.int64()))
    groups = numbered.group_by(names, use_threads=False).aggregate([("_row", "list")])
    values = [groups.column(name).to_pylist() for name in names]
    rows = data.drop_columns(names)
    lists = groups.column("_row_list").combine_chunks()
    for index, key in enumerate(zip(*values, strict=True)):
        yield tuple(key), rows.take(lists[index].values)


def new_data_file(table: Any, partition: tuple[Any, ...], name: str) -> ParquetOutput:
    """Begins a data file of a partition with the schema of the table."""
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
        schema_to_pyarrow,
    )
    from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
    from pyiceberg.typedef import Record

    spec, schema = table.spec(), table.schema()
    key = None
    if not spec.is_unpartitioned():
        values = [
            PartitionFieldValue(field=field, value=value) for field, value in zip(spec.fields, partition, strict=True)
        ]
        key = PartitionKey(field_values=values, partition_spec=spec, schema=schema)
    path = table.location_provider().new_data_location(data_file_name=name, partition_key=key)
    properties = table.metadata.properties

    def describe(metadata: Any, size: int) -> Mapping[str, Any]:
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=metadata,
            stats_columns=compute_statistics_plan(schema, properties),
            parquet_column_mapping=parquet_path_to_id_mapping(schema),
        )
        return {
            **statistics.to_serialized_dict(),
            "file_path": path,
            "file_size_in_bytes": size,
            "partition": tuple(key.partition if key is not None else Record()),
            "spec_id": spec.spec_id,
        }

    codec = properties.get(_CODEC, "zstd")
    return ParquetOutput(
        path,
        table.io.new_output(path).create(overwrite=True),
        schema_to_pyarrow(schema, include_field_ids=True),
        describe,
        lambda: table.io.delete(path),
        compression=_CODECS.get(codec, codec),
        store_decimal_as_integer=True,
    )
