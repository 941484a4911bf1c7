"""The expressions of DEFINE and MEASURES as functions of the rows of a match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firesteel.cep.nfa.shared_buffer import Entry
from firesteel.table.bound.nodes import Call, Expression, InputRef, walk
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.plan.match.node import MatchTime, RowAggregate, RowNavigation
from firesteel.table.plan.over import OverCall
from firesteel.table.plan.rewriting import transform
from firesteel.table.runtime.operators.over.calls import body_of

__all__ = ["compile_condition", "compile_measures", "is_of_current_row"]

Row = tuple[Any, ...]
NANOS = 1_000_000
"""Nanoseconds of a millisecond."""


def is_of_current_row(expression: Expression) -> bool:
    """Whether a condition depends on the current row only, and calls no function of the user.

    Such a function is called for those rows only that the automaton asks for.
    """
    return not any(
        isinstance(part, (RowNavigation, RowAggregate, MatchTime))
        or (isinstance(part, Call) and part.definition is not None)
        for part in walk(expression)
    )


def _split(expressions: Sequence[Expression], width: int) -> tuple[list[Expression], list[Expression]]:
    """Expressions over a row of ``width`` columns and more, and what the columns after these are."""
    found: dict[Expression, int] = {}

    def placed(part: Expression) -> Expression:
        if not isinstance(part, (RowNavigation, RowAggregate, MatchTime)):
            return part
        place = found.setdefault(part, len(found))
        return InputRef(part.type.copy(nullable=True), width + place, str(part))

    return [transform(expression, placed) for expression in expressions], list(found)


# -- conditions ----------------------------------------------------------------------------------------------------


def compile_condition(
    variable: str, condition: Expression, width: int, session: Session
) -> Callable[[Row, Any], bool | None]:
    """A function of a row and the context of the automaton."""
    (expression,), references = _split([condition], width)
    evaluate = compile_row([expression], session)
    getters = [_getter(reference, variable, session) for reference in references]

    def holds(row: Row, context: Any) -> bool | None:
        last = context.last
        values = [get(row, last, context) for get in getters]
        return evaluate((*row[:width], *values))[0]  # type: ignore[no-any-return]

    return holds


_Getter = Callable[[Row, Entry | None, Any], Any]


def _getter(reference: Expression, current: str, session: Session) -> _Getter:
    if isinstance(reference, MatchTime):
        return lambda _row, _last, context: context.event_timestamp * NANOS
    if isinstance(reference, RowAggregate):
        return _aggregate_getter(reference, current, session)
    assert isinstance(reference, RowNavigation)
    has_current = reference.variable in (None, current)
    if reference.from_first:
        return _first_getter(reference, has_current)
    return _last_getter(reference.variable, reference.column, reference.offset - has_current)


def _last_getter(variable: str | None, column: int, offset: int) -> _Getter:
    """The column of a row before the current one; ``offset`` is how many rows of the variable are between."""
    assert offset >= 0

    def get(_row: Row, last: Entry | None, _context: Any) -> Any:
        left = offset
        while last is not None:
            if variable is None or last[0] == variable:
                if not left:
                    return last[1][column]
                left -= 1
            last = last[3]
        return None

    return get


def _first_getter(reference: RowNavigation, has_current: bool) -> _Getter:
    column, offset, variable = reference.column, reference.offset, reference.variable

    def get(row: Row, last: Entry | None, _context: Any) -> Any:
        rows = _rows_of(last, variable)
        if has_current:
            rows.append(row)
        return rows[offset][column] if offset < len(rows) else None

    return get


def _aggregate_getter(reference: RowAggregate, current: str, session: Session) -> _Getter:
    aggregate = _aggregate(reference, session)
    variable, has_current = reference.variable, reference.variable in (None, current)

    def get(row: Row, last: Entry | None, _context: Any) -> Any:
        rows = _rows_of(last, variable)
        if has_current:
            rows.append(row)
        return aggregate(rows)

    return get


def _rows_of(entry: Entry | None, variable: str | None) -> list[Row]:
    rows = []
    while entry is not None:
        if variable is None or entry[0] == variable:
            rows.append(entry[1])
        entry = entry[3]
    rows.reverse()
    return rows


# -- measures ------------------------------------------------------------------------------------------------------


def compile_measures(
    measures: Sequence[Expression], partition: Sequence[int], session: Session
) -> Callable[[Mapping[str, list[Row]], int], Row]:
    """A function of a match and its time: the columns of its partition, and the measures."""
    expressions, references = _split(measures, 0)
    evaluate = compile_row(expressions, session)
    getters = [_measure_getter(reference, session) for reference in references]
    keys = tuple(partition)

    def measure(match: Mapping[str, list[Row]], time: int) -> Row:
        results = evaluate([get(match, time) for get in getters])
        if not keys:
            return results
        row = next(iter(match.values()))[0]
        return (*[row[index] for index in keys], *results)

    return measure


_MeasureGetter = Callable[[Mapping[str, list[Row]], int], Any]


def _measure_getter(reference: Expression, session: Session) -> _MeasureGetter:
    if isinstance(reference, MatchTime):
        return lambda _match, time: time * NANOS
    if isinstance(reference, RowAggregate):
        aggregate = _aggregate(reference, session)
        variable = reference.variable
        if variable is None:
            return lambda match, _time: aggregate(_all_rows(match))
        name = variable
        return lambda match, _time: aggregate(match.get(name, ()))
    assert isinstance(reference, RowNavigation)
    column, variable = reference.column, reference.variable
    place = reference.offset if reference.from_first else -1 - reference.offset
    needed = reference.offset + 1

    def get(match: Mapping[str, list[Row]], _time: int) -> Any:
        rows = _all_rows(match) if variable is None else match.get(variable, [])
        return rows[place][column] if len(rows) >= needed else None

    return get


def _all_rows(match: Mapping[str, list[Row]]) -> list[Row]:
    """In their order: the rows of a variable are neighbours."""
    return [row for rows in match.values() for row in rows]


# -- aggregates ----------------------------------------------------------------------------------------------------


def _aggregate(reference: RowAggregate, session: Session) -> Callable[[Sequence[Row]], Any]:
    arguments = reference.arguments
    types = [argument.type.copy(nullable=True) for argument in arguments]
    call = OverCall(reference.function, tuple(range(len(arguments))), reference.type, "")
    body = body_of(call, types, True, session)
    evaluate = compile_row(arguments, session)
    create, accumulate, result, takes_null = body.create, body.accumulate, body.result, body.takes_null

    def aggregate(rows: Sequence[Row]) -> Any:
        accumulator = create()
        for row in rows:
            values = evaluate(row)
            if takes_null or None not in values:
                accumulate(accumulator, *values)
        return result(accumulator)

    return aggregate
