"""The values of a type in numpy arrays: as integers, as floats, or as objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.types import logical as t
from firesteel.types.internal import arrow_type, from_column, to_column
from firesteel.types.logical import LogicalType

__all__ = ["Domain", "from_floats", "from_integers", "is_float", "to_integers"]

_OBJECTS = (t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType, t.DecimalType, t.VariantType, t.BitmapType)
_NAN_BITS = 0x7FF8000000000000
_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def is_float(type_: LogicalType) -> bool:
    return isinstance(type_, (t.FloatType, t.DoubleType))


def _is_objects(type_: LogicalType) -> bool:
    return isinstance(type_, _OBJECTS) or bool(type_.children()) or isinstance(type_, t.RawType)


def to_integers(array: Any) -> Any:
    """The values of a column without nulls as int64: numbers, 0 and 1 for booleans, units of time for times."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        return array.to_numpy(zero_copy_only=False).astype(np.int64)
    if not pa.types.is_integer(type_):
        array = array.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def from_integers(values: Any, is_null: Any, type_: LogicalType) -> Any:
    """A column of integers, which wrap if they are too large for the type."""
    target = arrow_type(type_)
    if pa.types.is_boolean(target):
        return pa.array(values != 0, mask=is_null)
    if pa.types.is_integer(target):
        return pa.array(values.astype(target.to_pandas_dtype(), copy=False), mask=is_null)
    width = np.int32 if target.bit_width == 32 else np.int64
    return pa.array(values.astype(width, copy=False), mask=is_null).view(target)


def from_floats(values: Any, is_null: Any, type_: LogicalType) -> Any:
    """A column of floats."""
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32 if isinstance(type_, t.FloatType) else np.float64, copy=False)
    # a NaN is a value
    return pa.array(numbers, mask=is_null, from_pandas=False)


class Domain:
    """How state has the values of a type, so that equal ones are equal and the order is Java's.

    Floats are integers in the order of ``Double.compare``: -0.0 is less than 0.0, and NaN is the greatest.
    """

    def __init__(self, type_: LogicalType):
        self.type = type_
        self.is_float = is_float(type_)
        self.has_objects = _is_objects(type_)
        self._is_nested = bool(type_.children())
        self.dtype = "O" if self.has_objects else "i8"

    def encode(self, array: Any) -> Any:
        """The values of a column without nulls."""
        if self.has_objects:
            values = from_column(array, self.type)
            if self._is_nested:
                values = [_hashable(value) for value in values]
            return np.fromiter(values, object, len(array))
        if self.is_float:
            floats = array.to_numpy(zero_copy_only=False).astype(np.float64)
            bits = floats.view(np.int64)
            bits = np.where(np.isnan(floats), _NAN_BITS, bits)
            return np.where(bits < 0, bits ^ _SIGN, bits)
        return to_integers(array)

    def decode(self, values: Any, is_null: Any = None) -> Any:
        """A column of values; where one is null it may be anything."""
        if self.has_objects:
            found: Sequence[Any] = values.tolist()
            if is_null is not None:
                found = [None if null else value for value, null in zip(found, is_null.tolist(), strict=True)]
            if isinstance(self.type, (t.MapType, t.MultisetType)):
                found = [None if value is None else dict(value) for value in found]
            return to_column(found, self.type)
        if self.is_float:
            values = np.ascontiguousarray(values, np.int64)
            return from_floats(np.where(values < 0, values ^ _SIGN, values).view(np.float64), is_null, self.type)
        return from_integers(values, is_null, self.type)

    def numbered(self, array: Any) -> tuple[Any, Any]:
        """Which of its distinct values each row of a column without nulls has, and an array of these values."""
        if self._is_nested:
            places: dict[Any, int] = {}
            numbers = [places.setdefault(value, len(places)) for value in self.encode(array).tolist()]
            return np.array(numbers, np.intp), np.fromiter(places, object, len(places))
        if not self.has_objects:
            # floats that are different bits may be one value
            array = pa.array(self.encode(array))
        encoded = array.dictionary_encode()
        numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        return numbers, self.encode(encoded.dictionary) if self.has_objects else encoded.dictionary.to_numpy()

    def ranked(self, array: Any) -> tuple[Any, Any]:
        """The place of each row's value among the distinct ones in order, and these as a column in order."""
        encoded = array.dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary)
        places = np.empty(len(order), np.intp)
        places[order.to_numpy(zero_copy_only=False)] = np.arange(len(order))
        return places[encoded.indices.to_numpy(zero_copy_only=False)], encoded.dictionary.take(order)


def _hashable(value: Any) -> Any:
    """A nested value as a key of a dictionary."""
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted(((_hashable(key), _hashable(item)) for key, item in value.items()), key=repr))
    return value
