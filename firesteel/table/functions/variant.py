"""VARIANT values of JSON text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import BOOLEAN, CHARACTER, check_count, mismatch, signature
from firesteel.table.inference.families import is_character, is_integer
from firesteel.table.values.variant import VariantError, element, field, parse_variant
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]


def _parse(name: str, is_safe: bool) -> Callable[..., str | None]:
    def parse(text: str | None, *options: bool | None) -> str | None:
        if text is None:
            return None
        if None in options:
            raise EvaluationError(f"{name} cannot know whether keys may occur twice: the second argument is NULL.")
        try:
            return parse_variant(text, *map(bool, options))
        except VariantError as error:
            if is_safe:
                return None
            raise EvaluationError(
                f"Failed to parse json string: {text!r}: {error}.", hint="TRY_PARSE_JSON returns NULL instead."
            ) from error

    return parse


def _signature(name: str, is_safe: bool) -> Signature:
    infer = signature(
        name,
        CHARACTER,
        BOOLEAN,
        returns=t.VariantType(),
        optional=1,
        nullable=True if is_safe else None,
        takes_null=not is_safe,
    )

    def of_text(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
        found = infer(arguments, symbols)
        nullable = is_safe or arguments[0].type.nullable
        return Inferred(found.arguments, found.result.copy(nullable))

    return of_text


def _define(name: str, is_safe: bool) -> FunctionDefinition:
    options: dict[str, Any] = {"strict": False, "can_fail": True, "family": "variant"}
    return FunctionDefinition(name, _signature(name, is_safe), row=_parse(name, is_safe), **options)


def _infer_at(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    check_count("[]", arguments, 2, 2)
    container, index = (argument.type for argument in arguments)
    if not is_integer(index) and not is_character(index):
        raise mismatch("ITEM", arguments, "'<VARIANT>[<CHARACTER>]' or '<VARIANT>[<INTEGER>]'")
    return Inferred((container, index), container.copy())


def _at(call: Call, session: Session) -> Callable[[str, Any], str | None]:
    find: Callable[[str, Any], str | None] = field if is_character(call.arguments[1].type) else element

    def part(value: str, key: Any) -> str | None:
        try:
            return find(value, key)
        except VariantError as error:
            raise EvaluationError(str(error)) from error

    return part


FUNCTIONS = (
    _define("PARSE_JSON", is_safe=False),
    _define("TRY_PARSE_JSON", is_safe=True),
    FunctionDefinition("VARIANT_AT", _infer_at, row=PerCall(_at), can_fail=True, family="variant"),
)
