"""Columns as pandas Series or Arrow arrays, which functions get and return."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.table.user_functions.conversion import write_column
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type, columns_schema
from firesteel.types.logical import FieldsType, LogicalType

__all__ = ["from_batch_result", "to_batch_argument"]


def to_batch_argument(kind: str, column: Any, type_: LogicalType, length: int, zone: str) -> Any:
    """A column, or a scalar of a constant, as a function takes it."""
    if isinstance(column, pa.Scalar):
        column = pa.repeat(column, length) if column.is_valid else pa.nulls(length, arrow_type(type_))
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if kind == "arrow":
        return column
    if isinstance(type_, FieldsType):
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]

        parts = [
            to_batch_argument(kind, part, part_type, length, zone)
            for part, part_type in zip(column.flatten(), type_.children(), strict=True)
        ]
        return pd.concat(parts, axis=1, keys=list(type_.field_names))
    series = column.to_pandas(date_as_object=True)
    if isinstance(type_, t.LocalZonedTimestampType):
        series = series.dt.tz_localize("UTC") if series.dt.tz is None else series
        return series.dt.tz_convert(zone)
    return series


def from_batch_result(kind: str, result: Any, type_: LogicalType, length: int, zone: str) -> Any:
    """The column of what a function has returned."""
    if kind == "arrow":
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            raise TypeError(f"an Array is needed, not {type(result).__name__}")
        found = result.cast(arrow_type(type_))
    else:
        found = _from_pandas(result, type_, length, zone)
    if len(found) != length:
        raise ValueError(f"the result has {len(found)} rows, but the arguments have {length}")
    return found


def _from_pandas(result: Any, type_: LogicalType, length: int, zone: str) -> Any:
    import pandas as pd

    if isinstance(result, pd.DataFrame):
        if not isinstance(type_, FieldsType):
            raise TypeError("a Series is needed, not a DataFrame")
        parts = type_.fields
        if len(result.columns) != len(parts):
            raise ValueError(f"the DataFrame has {len(result.columns)} columns, but the type has {len(parts)} fields")
        names = list(result.columns)
        by_name = set(names) == set(type_.field_names)
        columns = [
            _from_pandas(result[part.name] if by_name else result.iloc[:, index], part.type, length, zone)
            for index, part in enumerate(parts)
        ]
        fields = columns_schema(t.RowType(type_.fields))
        return pa.StructArray.from_arrays(columns, fields=list(fields))
    if not isinstance(result, pd.Series):
        raise TypeError(f"a Series is needed, not {type(result).__name__}")
    target = arrow_type(type_)
    if isinstance(type_, t.LocalZonedTimestampType) and getattr(result.dt, "tz", None) is None:
        result = result.dt.tz_localize(zone)
    try:
        return pa.Array.from_pandas(result, type=target)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    if result.dtype.kind == "f" and target in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        return pa.Array.from_pandas(result).cast(target, safe=False)
    values = [None if _is_missing(value) else value for value in result.tolist()]
    return write_column(values, type_, zone)


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return value is None or value is pd.NaT or (isinstance(value, float) and value != value)
