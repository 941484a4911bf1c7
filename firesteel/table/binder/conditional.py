"""What is CASE in other words: COALESCE, IF, IFNULL, NULLIF and OVERLAPS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from firesteel.table.binder.calls import call, case_of, cast_to
from firesteel.table.bound.nodes import Case, Expression, Literal
from firesteel.table.functions.signatures import check_count, common_arguments, illegal_null, mismatch
from firesteel.table.inference.families import is_boolean, is_datetime, is_interval, is_null

__all__ = ["CONDITIONAL", "overlaps"]


def _coalesce(arguments: Sequence[Expression]) -> Expression:
    """The first argument that is not NULL; NOT NULL if one of the arguments is."""
    check_count("COALESCE", arguments, 1, None)
    common = common_arguments("COALESCE", arguments)
    cast = [cast_to(argument, common) for argument in arguments]
    nullable = all(argument.type.nullable for argument in arguments)
    if len(cast) == 1:
        return cast[0]
    conditions = tuple(call("IS_NOT_NULL", [argument]) for argument in cast[:-1])
    return Case(common.copy(nullable), conditions, tuple(cast[:-1]), cast[-1])


def _if(arguments: Sequence[Expression]) -> Expression:
    check_count("IF", arguments, 3, 3)
    condition, *results = arguments
    if not is_boolean(condition.type):
        raise mismatch("IF", arguments, "'IF(<BOOLEAN>, <ANY>, <ANY>)'")
    if any(is_null(result.type) for result in results):
        raise illegal_null()
    made = case_of([condition], results)
    return replace(made, type=made.type.copy(made.type.nullable or condition.type.nullable))


def _if_null(arguments: Sequence[Expression]) -> Expression:
    check_count("IFNULL", arguments, 2, 2)
    made = _coalesce(arguments)
    return replace(made, type=made.type.copy(arguments[1].type.nullable))


def _null_if(arguments: Sequence[Expression]) -> Expression:
    check_count("NULLIF", arguments, 2, 2)
    value = arguments[0]
    return Case(value.type.copy(), (call("EQUALS", arguments),), (Literal(value.type.copy(), None),), value)


CONDITIONAL: dict[str, Callable[[Sequence[Expression]], Expression]] = {
    "COALESCE": _coalesce,
    "IF": _if,
    "IFNULL": _if_null,
    "NULLIF": _null_if,
}


def overlaps(periods: Sequence[Sequence[Expression]]) -> Expression:
    """Whether two periods have a moment in common, their ends included."""
    (first, last), (other_first, other_last) = map(_ends, periods)
    starts = call("LESS_THAN_OR_EQUAL", [other_first, last])
    return call("AND", [starts, call("LESS_THAN_OR_EQUAL", [first, other_last])])


def _ends(period: Sequence[Expression]) -> tuple[Expression, Expression]:
    """The first and the last moment; the end may be an interval, and may lie before the start."""
    types = [part.type for part in period]
    if len(types) != 2 or not is_datetime(types[0]) or not (is_interval(types[1]) or types[1].root is types[0].root):
        raise mismatch("OVERLAPS", period, "'(<DATETIME>, <DATETIME>)' or '(<DATETIME>, <INTERVAL>)' on both sides")
    start, end = period
    if is_interval(end.type):
        end = call("PLUS", [start, end])
    in_order = call("LESS_THAN_OR_EQUAL", [start, end])
    return case_of([in_order], [start, end]), case_of([in_order], [end, start])
