"""Results of a PyFlink program as its client gets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.types import Row
from firesteel.types.java_text import to_java_float

__all__ = ["collected_value"]

_LISTS = (BasicArrayTypeInfo, ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)


def collected_value(type_info: TypeInformation | None) -> Callable[[Any], Any] | None:
    """Returns what PyFlink makes of a collected value; None if it stays as it is.

    A FLOAT becomes the number of its shortest decimal form: 0.1, not 0.10000000149011612.
    """
    if type_info == Types.FLOAT():
        return _shortest
    if isinstance(type_info, TupleTypeInfo):
        parts = [collected_value(field) for field in type_info.get_field_types()]
        return None if not any(parts) else lambda value: tuple(_each(parts, value))
    if isinstance(type_info, RowTypeInfo):
        parts = [collected_value(field) for field in type_info.get_field_types()]
        return None if not any(parts) else lambda row: _row(parts, row)
    if isinstance(type_info, _LISTS):
        element = collected_value(type_info.get_element_type())
        return None if element is None else lambda values: [_or_none(element, value) for value in values]
    if isinstance(type_info, MapTypeInfo):
        item = collected_value(type_info.get_value_type())
        return None if item is None else lambda values: {key: _or_none(item, value) for key, value in values.items()}
    return None


def _shortest(value: float) -> float:
    return float(to_java_float(value))


def _or_none(part: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if part is None or value is None else part(value)


def _each(parts: list[Callable[[Any], Any] | None], values: Any) -> list[Any]:
    return [_or_none(part, value) for part, value in zip(parts, values, strict=True)]


def _row(parts: list[Callable[[Any], Any] | None], row: Row) -> Row:
    row._values = _each(parts, row._values)
    return row
