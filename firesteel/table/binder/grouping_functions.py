"""GROUPING, GROUPING_ID and GROUP_ID: which columns of GROUP BY are in the grouping set of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from firesteel.table.binder.calls import call
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Case, Expression, InputRef, Literal
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import Aggregate, AggregateCall, LogicalNode, Project, SetKind, SetOperation
from firesteel.types.logical import BigIntType

__all__ = ["grouping_call", "grouping_function", "with_grouping_functions"]

_FUNCTIONS = frozenset({"GROUPING", "GROUPING_ID", "GROUP_ID"})
_BIGINT = BigIntType(nullable=False)


def grouping_function(node: exp.Expression) -> str | None:
    """The function of which a node is a call; None if it is another node."""
    if isinstance(node, nodes.Call) and node.function_name in _FUNCTIONS:
        return node.function_name
    return None


def grouping_call(function: str, arguments: Sequence[int | None], is_aggregate: bool, number: int) -> AggregateCall:
    """A call over columns of GROUP BY; None stands for an argument that is not among them."""
    if function == "GROUP_ID" and arguments:
        raise ValidationError("Invalid number of arguments to function 'GROUP_ID'. Was expecting 0 arguments")
    if not is_aggregate:
        raise ValidationError(f"{function} operator may only occur in an aggregate query", hint="Add GROUP BY.")
    if function != "GROUP_ID" and not arguments:
        raise ValidationError(f"Invalid number of arguments to function '{function}'. Was expecting 1 arguments")
    columns = tuple(column for column in arguments if column is not None)
    if len(columns) < len(arguments):
        raise ValidationError(f"Argument to {function} operator must be a grouped expression")
    return AggregateCall(function, columns, _BIGINT, f"EXPR${number}")


def with_grouping_functions(aggregate: Aggregate) -> LogicalNode:
    """The aggregation with constants of its grouping sets in place of calls of these functions.

    >>> from firesteel.table import DataTypes
    >>> from firesteel.table.plan.nodes import Values
    >>> from firesteel.types.logical import RowType
    >>> rows = Values(RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()]), ())
    >>> grouping = AggregateCall("GROUPING", (1,), DataTypes.BIGINT(), "g")
    >>> print(with_grouping_functions(Aggregate(rows, (0, 1), (grouping,), ((0, 1), (0,)))).explain())
    Project(a=[a], b=[b], g=[CASE WHEN EQUALS($grouping_id, 0) THEN 0 ELSE 1 END], $grouping_id=[$grouping_id])
      Aggregate(groupBy=[a, b], groupingSets=[(a, b), (a)])
        Values(rows=[])
    """
    rounds = _rounds(aggregate.grouping_sets or ())
    if len(rounds) > 1:
        # a set that occurs again is computed again
        keys = range(len(aggregate.grouping) + len(aggregate.calls))
        made = [_with_constants(_with_sets(aggregate, sets), number) for number, sets in enumerate(rounds)]
        return SetOperation(SetKind.UNION, tuple(_chosen(node, keys) for node in made), all=True)
    return _with_constants(aggregate, 0)


def _rounds(sets: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], ...]]:
    """The different sets, then those that occur again, and so on."""
    rounds: list[dict[frozenset[int], tuple[int, ...]]] = []
    for group in sets:
        free = next((known for known in rounds if frozenset(group) not in known), None)
        if free is None:
            rounds.append(free := {})
        free[frozenset(group)] = group
    return [tuple(known.values()) for known in rounds]


def _with_sets(aggregate: Aggregate, sets: tuple[tuple[int, ...], ...]) -> Aggregate:
    is_plain = len(sets) == 1 and set(sets[0]) == set(aggregate.grouping)
    return replace(aggregate, grouping_sets=None if is_plain else sets)


def _chosen(node: LogicalNode, columns: Sequence[int]) -> LogicalNode:
    fields = node.row_type.fields
    chosen = [InputRef(fields[index].type, index, fields[index].name) for index in columns]
    return Project(node, tuple(chosen), tuple(column.name for column in chosen))


def _with_constants(aggregate: Aggregate, group_id: int) -> LogicalNode:
    own = tuple(item for item in aggregate.calls if item.function not in _FUNCTIONS)
    if len(own) == len(aggregate.calls):
        return aggregate
    below = replace(aggregate, calls=own)
    fields = below.row_type.fields
    columns = [InputRef(part.type, index, part.name) for index, part in enumerate(fields)]
    keys = len(aggregate.grouping)
    made: list[Expression] = list(columns[:keys])
    names = [column.name for column in columns[:keys]]
    for item in aggregate.calls:
        is_own = item.function not in _FUNCTIONS
        made.append(columns[keys + own.index(item)] if is_own else _constants(item, aggregate, columns[-1], group_id))
        names.append(item.name)
    if aggregate.grouping_sets is not None:
        made.append(columns[-1])
        names.append(columns[-1].name)
    return Project(below, tuple(made), tuple(names))


def _constants(item: AggregateCall, aggregate: Aggregate, grouping_id: InputRef, group_id: int) -> Expression:
    """The value in each grouping set."""
    if item.function == "GROUP_ID":
        return Literal(_BIGINT, group_id)
    sets = aggregate.grouping_sets
    if sets is None:
        return Literal(_BIGINT, 0)
    values: dict[int, int] = {}
    for group in sets:
        values.setdefault(_id(group, aggregate.grouping), _id(group, item.arguments))
    *first, last = values.items()
    conditions = [call("EQUALS", [grouping_id, Literal(_BIGINT, number)]) for number, _ in first]
    results = [Literal(_BIGINT, value) for _, value in first]
    if all(result.value == last[1] for result in results):
        return Literal(_BIGINT, last[1])
    return Case(_BIGINT, tuple(conditions), tuple(results), Literal(_BIGINT, last[1]))


def _id(group: Sequence[int], columns: Sequence[int]) -> int:
    """A bit for each column, the first one the highest: 1 if it is not in the set."""
    return sum(1 << place for place, column in enumerate(reversed(columns)) if column not in group)
