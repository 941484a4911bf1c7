"""Conversion of type hints to type information, and of records to their declared type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.process.pyflink_names import is_pyflink_program
from firesteel.types.conversion import conversion_of

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


def conform(elements: Sequence[Any], type_info: TypeInformation) -> list[Any]:
    """The elements of a collection as values of a type.

    In a PyFlink program an integer keeps the bits that its type has; otherwise one that is too large is an error.

    >>> conform([(1, "a")], Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]))[0].name
    'a'
    """
    wraps = is_pyflink_program()
    conversion = conversion_of(type_info, wraps=wraps)
    if conversion is None:
        return list(elements)
    converted = []
    for index, element in enumerate(elements):
        problem = None if wraps else type_info.validate(element)
        if problem is None:
            try:
                converted.append(None if element is None else conversion.convert(element))
            except (TypeError, ValueError, OverflowError, AttributeError) as error:
                problem = type_info.validate(element) or str(error)
        if problem is not None:
            raise InvalidProgramError(f"Element {index} of the collection does not fit its type: {problem}")
    return converted
