"""Objects of structured types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall
from firesteel.table.inference.families import is_character, is_null
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]

_CLASS_NAME = re.compile(r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)*")


def _names(name: str, arguments: Sequence[Expression]) -> list[str]:
    """The names of the fields, which are every second argument after the first."""
    if len(arguments) % 2 == 0:
        raise ValidationError(f"{name} takes a value for each name of a field.")
    found: list[str] = []
    for position, key in enumerate(arguments[1::2], 1):
        if not isinstance(key, Literal) or key.value is None or not is_character(key.type):
            raise ValidationError(f"The field key at position {2 * position} must be a non-null string literal.")
        if key.value in found:
            raise ValidationError(f"The field name '{key.value}' at position {2 * position} is repeated.")
        found.append(key.value)
    for value in arguments[2::2]:
        if is_null(value.type):
            raise ValidationError("Illegal use of 'NULL'.", hint="Give it a type: CAST(NULL AS INT).")
    return found


def _infer_of(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    if not arguments:
        raise ValidationError("OBJECT_OF needs the name of a class.")
    first = arguments[0]
    if not isinstance(first, Literal) or first.value is None or not is_character(first.type):
        raise ValidationError("The first argument must be a non-null string literal, the name of the class.")
    if not _CLASS_NAME.fullmatch(first.value):
        raise ValidationError(f"Invalid class name '{first.value}'. It must be a class name of the JVM.")
    names = _names("OBJECT_OF", arguments)
    fields = [t.RowField(name, value.type) for name, value in zip(names, arguments[2::2], strict=True)]
    return Inferred(tuple(argument.type for argument in arguments), t.StructuredType(fields, first.value))


def _infer_update(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    if not arguments:
        raise ValidationError("OBJECT_UPDATE needs an object.")
    type_ = arguments[0].type
    if not isinstance(type_, t.StructuredType):
        raise ValidationError(f"The first argument must be a structured type, but was {type_.as_summary_string()}.")
    names = _names("OBJECT_UPDATE", arguments)
    for position, name in enumerate(names, 1):
        if name not in type_.field_names:
            raise ValidationError(
                f"The field name '{name}' at position {2 * position} is not part of the structured type attributes. "
                f"Available attributes: [{', '.join(type_.field_names)}]."
            )
    new = dict(zip(names, (value.type for value in arguments[2::2]), strict=True))
    fields = [t.RowField(part.name, new.get(part.name, part.type)) for part in type_.fields]
    result = t.StructuredType(fields, type_.class_name, nullable=type_.nullable)
    return Inferred(tuple(argument.type for argument in arguments), result)


def _make(_: str, *values: Any) -> tuple[Any, ...]:
    return values[1::2]


def _update(call: Call, session: Session) -> Callable[..., tuple[Any, ...] | None]:
    type_ = call.arguments[0].type
    assert isinstance(type_, t.StructuredType)
    places = [type_.field_names.index(key.value) for key in call.arguments[1::2] if isinstance(key, Literal)]

    def update(row: tuple[Any, ...] | None, *values: Any) -> tuple[Any, ...] | None:
        if row is None:
            return None
        made = list(row)
        for place, value in zip(places, values[1::2], strict=True):
            made[place] = value
        return tuple(made)

    return update


FUNCTIONS = (
    FunctionDefinition(
        "OBJECT_OF", _infer_of, row=_make, strict=False, returns_null=False, family="value construction"
    ),
    FunctionDefinition("OBJECT_UPDATE", _infer_update, row=PerCall(_update), strict=False, family="value construction"),
)
