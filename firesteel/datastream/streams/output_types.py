"""Conversion of type hints to type information, and of records to their declared type."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from firesteel.common.types import Row, values_by_name

__all__ = ["conform", "to_type_info"]


def to_type_info(output_type: Any) -> TypeInformation | None:
    """The type information of a hint; a list of types is a row type, None is unknown."""
    if output_type is None or isinstance(output_type, TypeInformation):
        return output_type
    if isinstance(output_type, list):
        return Types.ROW(output_type)
    raise TypeError(
        f"A type must be None, a TypeInformation such as Types.INT(), or a list of them, got {output_type!r}."
    )


def conform(value: Any, type_info: TypeInformation | None) -> Any:
    """The value as records of that type are in PyFlink: a Row with the type's names, a tuple, or as it is.

    >>> conform((1, "a"), Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])).name
    'a'
    """
    if value is None:
        return None
    if isinstance(type_info, RowTypeInfo):
        names = type_info.get_field_names()
        row = Row(*map(conform, values_by_name(value, names) or (), type_info.get_field_types()))
        row.set_field_names(names)
        if isinstance(value, Row):
            row.set_row_kind(value.get_row_kind())
        return row
    if isinstance(type_info, TupleTypeInfo):
        return tuple(map(conform, value, type_info.get_field_types()))
    return value
