"""Rows of column batches as tuples, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema, from_column, to_column
from firesteel.types.logical import DoubleType, FloatType, LogicalType, RowType

__all__ = ["RowCodec", "identity_of"]


class RowCodec:
    """Makes tuples of the rows of batches with a row type, and batches of tuples."""

    def __init__(self, row_type: RowType):
        self.types = [part.type for part in row_type.fields]
        self.schema = columns_schema(row_type)
        self.null_row = (None,) * len(self.types)

    def decode(self, data: Any) -> list[tuple[Any, ...]]:
        """The rows of a RecordBatch."""
        columns = [from_column(data.column(index), type_) for index, type_ in enumerate(self.types)]
        return list(zip(*columns, strict=True)) if columns else [()] * data.num_rows

    def arrays(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The columns of rows."""
        columns = zip(*rows, strict=True) if rows else [()] * len(self.types)
        return [to_column(values, type_) for values, type_ in zip(columns, self.types, strict=True)]

    def encode(self, rows: Sequence[tuple[Any, ...]]) -> Any:
        """The RecordBatch of rows."""
        return record_batch(self.arrays(rows), self.schema, len(rows))


def record_batch(arrays: Sequence[Any], schema: Any, count: int) -> Any:
    """The RecordBatch of columns; one without columns has rows too."""
    pa = require_pyarrow("SQL")
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def identity_of(types: Sequence[LogicalType]) -> Callable[[tuple[Any, ...]], Any] | None:
    """What makes a hashable value of a row, equal for equal rows; None if the row is that itself."""
    if not any(isinstance(type_, (FloatType, DoubleType)) or type_.children() for type_ in types):
        return None
    return lambda row: tuple(map(_frozen, row))


def _frozen(value: Any) -> Any:
    """NaN is equal to NaN, and -0.0 is not 0.0."""
    if value.__class__ is float:
        return ("NaN",) if value != value else repr(value) if value == 0 else value
    if value.__class__ in (list, tuple):
        return tuple(map(_frozen, value))
    if value.__class__ is dict:
        return frozenset((_frozen(key), _frozen(item)) for key, item in value.items())
    return value
