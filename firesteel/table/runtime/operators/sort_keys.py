"""The order of rows as values that Python compares: integers where there can be, else tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.nodes import SortKey
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import from_column
from firesteel.types.logical import LogicalType, RowType

__all__ = ["SortKeys"]

_LOWEST, _HIGHEST = -(1 << 64), 1 << 64
"""What null is among integers."""
_OBJECTS = (t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType, t.DecimalType)


class SortKeys:
    """Computes a value for each row; rows are sorted as these are, and are equal in the order if these are."""

    def __init__(self, row_type: RowType, order: Sequence[SortKey]) -> None:
        self._order = tuple(order)
        self._types = [row_type.fields[key.index].type for key in order]
        for type_ in self._types:
            if type_.children():
                raise ValidationError(f"Rows cannot be sorted by a column of type {type_.as_summary_string()}.")
        self.is_single_integer = len(self._types) == 1 and not isinstance(self._types[0], _OBJECTS)
        """Whether a single integer is the value of a row."""

    def integers(self, data: Any) -> Any:
        """The values as a numpy array of int64, if the order is that of one integer; None if some are null."""
        (key,), (type_,) = self._order, self._types
        array = data.column(key.index)
        return None if array.null_count else _integers(array, type_, key.descending)

    def ranked(self, data: Any) -> tuple[Any, Any]:
        """The values as a numpy array, if the order is that of one integer, and classes that come before: of nulls."""
        import numpy as np

        (key,), (type_,) = self._order, self._types
        array = data.column(key.index)
        classes = np.zeros(len(array), np.int8)
        if array.null_count:
            classes[array.is_null().to_numpy(zero_copy_only=False)] = 1 if key.nulls_last else -1
        return _integers(array, type_, key.descending), classes

    def of(self, data: Any) -> list[Any]:
        """The value of each row of a RecordBatch."""
        columns = [
            _values(data.column(key.index), type_, key) for key, type_ in zip(self._order, self._types, strict=True)
        ]
        if len(columns) == 1:
            return columns[0]
        return list(zip(*columns, strict=True)) if columns else [0] * data.num_rows


def _values(array: Any, type_: LogicalType, key: SortKey) -> list[Any]:
    if isinstance(type_, _OBJECTS):
        null = (2,) if key.nulls_last else (0,)
        wrap = _reversed(type_) if key.descending else None
        values = from_column(array, type_)
        if wrap is None:
            return [null if value is None else (1, value) for value in values]
        return [null if value is None else (1, wrap(value)) for value in values]
    numbers: list[Any] = _integers(array, type_, key.descending).tolist()
    if array.null_count:
        null_number = _HIGHEST if key.nulls_last else _LOWEST
        for index in array.is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist():
            numbers[index] = null_number
    return numbers


def _reversed(type_: LogicalType) -> Any:
    return (lambda value: value.copy_negate()) if isinstance(type_, t.DecimalType) else _Descending


def _integers(array: Any, type_: LogicalType, descending: bool) -> Any:
    """Integers in the order of the values; those of null are any."""
    import numpy as np

    pa = require_pyarrow("SQL")
    if isinstance(type_, (t.FloatType, t.DoubleType)):
        floats = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
        bits = np.where(np.isnan(floats), np.nan, floats).view(np.int64)
        # negative numbers have their bits in reverse order
        numbers = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
    else:
        if pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
            array = array.cast(pa.int32())
        numbers = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return ~numbers if descending else numbers


class _Descending:
    """A value that is less if the value in it is greater."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)
