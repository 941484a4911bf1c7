"""Typed calls, with the casts that a function needs."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Case, Cast, Expression, Literal
from firesteel.table.functions.definition import FunctionDefinition
from firesteel.table.functions.registry import function as function_of
from firesteel.table.functions.signatures import common_arguments
from firesteel.table.inference.families import is_datetime, is_null
from firesteel.types.logical import LogicalType

__all__ = ["call", "case_of", "cast_to"]


def cast_to(expression: Expression, type_: LogicalType, safe: bool = False) -> Expression:
    """The expression with an implicit cast, unless it has the type but for its nullability."""
    if expression.type.copy() == type_.copy():
        return expression
    if isinstance(expression, Literal) and expression.value is None:
        return Literal(type_.copy(), None)
    return Cast(type_.copy(safe or expression.type.nullable), expression, safe)


def call(
    name: str, arguments: Sequence[Expression], symbols: tuple[str, ...] = (), user: FunctionDefinition | None = None
) -> Call:
    """A call with the types that the function infers; ``user`` is the definition of a function of the user."""
    definition = function_of(name) if user is None else user
    inferred = definition.signature(arguments, symbols)
    # a string that is no date is not equal to one, nor different: it is unknown
    safe = definition.name in ("EQUALS", "NOT_EQUALS")
    cast = tuple(
        cast_to(argument, type_, safe and is_datetime(type_))
        for argument, type_ in zip(arguments, inferred.arguments, strict=True)
    )
    return Call(inferred.result, definition.name, cast, symbols, user)


def case_of(conditions: Sequence[Expression], results: Sequence[Expression]) -> Case:
    """CASE with results of one type; the last one is the default."""
    common = common_arguments("CASE", results)
    if is_null(common):
        raise ValidationError("At least one result of CASE must not be NULL.")
    cast = [cast_to(result, common) for result in results]
    return Case(common, tuple(conditions), tuple(cast[:-1]), cast[-1])
