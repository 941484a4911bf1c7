"""The clauses of MATCH_RECOGNIZE become one node of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from firesteel.table.binder.match.expressions import MatchExpressionBinder, MatchScope
from firesteel.table.binder.match.patterns import after_match, bind_pattern
from firesteel.table.binder.over import sort_key
from firesteel.table.binder.places import place_of
from firesteel.table.binder.query_expressions import QueryExpressionBinder
from firesteel.table.binder.query_scope import QueryScope
from firesteel.table.binder.scope import ScopeColumn
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.parser import nodes
from firesteel.table.plan.match.node import Match, Measure, RowAggregate, RowNavigation
from firesteel.table.plan.nodes import LogicalNode, Project, SortKey
from firesteel.table.plan.rewriting import moved_inputs, transform
from firesteel.table.plan.streaming import FinalRows
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.types.logical import DayTimeIntervalType, LocalZonedTimestampType, TimestampType

__all__ = ["bind_match"]


def bind_match(
    node: nodes.MatchRecognize, rows: LogicalNode, rows_binder: QueryExpressionBinder, sql: str
) -> LogicalNode:
    """The matches in a relation; ``rows_binder`` binds expressions over its columns."""
    session = rows_binder._session
    if str(node.args.get("rows") or "").startswith("ALL"):
        raise ValidationError("All rows per match mode is not supported yet.", hint="Write ONE ROW PER MATCH.")
    if node.args.get("subsets"):
        raise ValidationError(
            "SUBSET is not supported.", hint="Flink accepts it, and gives NULL for the columns of the variable."
        )
    partition = tuple(_column(part, rows_binder, "PARTITION BY") for part in node.args.get("partition_by") or ())
    order = _order(node, rows_binder, session)
    pattern = bind_pattern(node.args["pattern"].this, sql)
    variables = [term.variable for term in pattern]
    # Flink ignores definitions of variables that the pattern does not have
    known = [*variables, *(item.alias for item in node.args["define"])]
    scope = QueryScope([ScopeColumn(part.name, part.type) for part in rows.row_type.fields])

    def binder(current: str | None) -> MatchExpressionBinder:
        own = MatchScope(scope, known, current)
        return MatchExpressionBinder(own, sql, session, is_measure=current is None)

    definitions: dict[str, Expression] = {}
    for item in node.args["define"]:
        variable = item.alias
        if variable in definitions:
            raise ValidationError(f"Pattern variable '{variable}' has already been defined.").at(place_of(item, sql))
        definitions[variable] = binder(variable).bind_definition(item.this)
    if not node.args.get("measures"):
        raise ValidationError("MATCH_RECOGNIZE needs MEASURES: the columns of a match.")
    measures = [Measure(item.alias, binder(None).bind(item.this)) for item in node.args["measures"]]
    _check_names([rows.row_type.field_names[index] for index in partition], [measure.name for measure in measures])
    bound = Match(
        rows,
        partition,
        order,
        pattern,
        tuple((name, condition) for name, condition in definitions.items() if name in variables),
        tuple(measures),
        after_match(node.args.get("after"), variables),
        _within_ms(node.args.get("within"), rows_binder),
        is_bounded=not session.is_streaming,
        position=place_of(node, sql),
    )
    narrowed = _narrowed(bound)
    # bounded queries may change rows on the way; those that are left are matched
    return replace(narrowed, input=FinalRows(narrowed.input)) if narrowed.is_bounded else narrowed


def _column(node: exp.Expression, binder: QueryExpressionBinder, clause: str) -> int:
    bound = binder.bind(node)
    if not isinstance(bound, InputRef):
        raise ValidationError(f"{clause} of MATCH_RECOGNIZE takes columns, not '{bound}'.", hint="Compute it before.")
    return bound.index


def _order(node: nodes.MatchRecognize, binder: QueryExpressionBinder, session: Session) -> tuple[SortKey, ...]:
    order = node.args.get("order")
    if order is None:
        raise ValidationError("You must specify either rowtime or proctime for order by.", hint="Add ORDER BY.")
    keys = []
    for item in order.expressions:
        index = _column(item.this, binder, "ORDER BY")
        if item.args.get("nulls_first") is not None:
            raise ValidationError("NULLS FIRST and NULLS LAST are not supported in ORDER BY of MATCH_RECOGNIZE.")
        keys.append(sort_key(item, index, binder.scope.columns[index].type))
    first = binder.scope.columns[keys[0].index].type
    is_time = is_rowtime(first) or is_proctime(first)
    if not session.is_streaming:
        is_time = isinstance(first, (TimestampType, LocalZonedTimestampType))
    if not is_time:
        raise ValidationError(
            "You must specify either rowtime or proctime for order by as the first one.",
            hint="Declare a WATERMARK for the column in its table, or use a column that is PROCTIME().",
        )
    if keys[0].descending:
        raise ValidationError("Primary sort order of a streaming table must be ascending on time.")
    return tuple(keys)


def _within_ms(node: exp.Expression | None, binder: QueryExpressionBinder) -> int | None:
    if node is None:
        return None
    bound = binder.bind(node)
    if not isinstance(bound, Literal) or not isinstance(bound.type, DayTimeIntervalType):
        raise ValidationError(
            "Only constant intervals with millisecond resolution are supported as time constraints of patterns."
        )
    # one that is not positive is none
    return int(bound.value) if bound.value > 0 else None


def _check_names(partition: Sequence[str], measures: Sequence[str]) -> None:
    names = [*partition, *measures]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValidationError(f"Columns ambiguously defined: {{{name}}}", hint="Give the measure another name.")


def _narrowed(match: Match) -> Match:
    """The match of those columns that it reads; rows are kept with these only."""
    expressions = [*(one for _, one in match.definitions), *(measure.expression for measure in match.measures)]
    used = {*match.partition, *(key.index for key in match.order)}
    for expression in expressions:
        used |= _columns_of(expression)
    kept = sorted(used)
    fields = match.input.row_type.fields
    if len(kept) == len(fields):
        return match
    places = {old: new for new, old in enumerate(kept)}
    columns = tuple(InputRef(fields[index].type, index, fields[index].name) for index in kept)
    return replace(
        match,
        input=Project(match.input, columns, tuple(column.name for column in columns)),
        partition=tuple(places[index] for index in match.partition),
        order=tuple(replace(key, index=places[key.index]) for key in match.order),
        definitions=tuple((name, _moved(one, places)) for name, one in match.definitions),
        measures=tuple(replace(one, expression=_moved(one.expression, places)) for one in match.measures),
    )


def _columns_of(expression: Expression) -> set[int]:
    found: set[int] = set()

    def visit(part: Expression) -> Expression:
        if isinstance(part, InputRef):
            found.add(part.index)
        elif isinstance(part, RowNavigation):
            found.add(part.column)
        elif isinstance(part, RowAggregate):
            found.update(*map(_columns_of, part.arguments))
        return part

    transform(expression, visit)
    return found


def _moved(expression: Expression, places: dict[int, int]) -> Expression:
    def moved(part: Expression) -> Expression:
        if isinstance(part, RowNavigation):
            return replace(part, column=places[part.column])
        if isinstance(part, RowAggregate):
            return replace(part, arguments=tuple(moved_inputs(one, places) for one in part.arguments))
        return replace(part, index=places[part.index]) if isinstance(part, InputRef) else part

    return transform(expression, moved)
