"""Columns that nobody reads are not computed, and not read by sources that can leave them out.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.connectors.in_memory import InMemorySource, batch_of
>>> from firesteel.table.bound.nodes import InputRef
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()], nullable=False)
>>> source = InMemorySource(row_type, batch_of([(1, 2)], row_type))
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), row_type, source=source)
>>> pruned = prune_columns(Calc(scan, (InputRef(DataTypes.INT(), 1, "b"),), ("x",)))
>>> print(pruned.inputs()[0].row_type)
ROW<`b` INT> NOT NULL
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from firesteel.table.connector.push_downs import PushedProjection
from firesteel.table.plan.nodes import Aggregate, Join, JoinKind, LogicalNode, SetKind, SetOperation, Sort, TableScan
from firesteel.table.plan.replicate import Expand
from firesteel.table.plan.rewriting import moved_inputs
from firesteel.table.plan.streaming import Calc, NamedQuery, Sink, WatermarkAssigner, inputs_of
from firesteel.table.rules.references import references
from firesteel.types.logical import CharType, LogicalType, RowType, VarBinaryType, VarCharType

__all__ = ["Places", "Pruned", "prune", "prune_columns", "prunes"]

Places = dict[int, int]
"""Where columns that are kept have gone."""
Pruned = tuple[LogicalNode, Places]
N = TypeVar("N", bound=LogicalNode)
_RULES: dict[type[LogicalNode], Callable[[Any, frozenset[int]], Pruned]] = {}


def prunes(
    kind: type[N],
) -> Callable[[Callable[[N, frozenset[int]], Pruned]], Callable[[N, frozenset[int]], Pruned]]:
    """Registers what prunes a kind of nodes. A node without a rule reads all columns of its inputs."""

    def register(rule: Callable[[N, frozenset[int]], Pruned]) -> Callable[[N, frozenset[int]], Pruned]:
        _RULES[kind] = rule
        return rule

    return register


def prune_columns(node: LogicalNode) -> LogicalNode:
    """A plan with the same columns."""
    everything = list(range(len(node.row_type.fields)))
    pruned, places = prune(node, everything)
    return _selected(pruned, [places[index] for index in everything])


def prune(node: LogicalNode, needed: Iterable[int]) -> Pruned:
    """The node with at least the columns that are needed, and where these are."""
    wanted = frozenset(needed)
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(node, wanted)
    inputs = [prune_columns(below) for below in node.inputs()]
    return node.with_inputs(inputs), {index: index for index in range(len(node.row_type.fields))}


def _or_cheapest(needed: Iterable[int], types: Iterable[LogicalType]) -> list[int]:
    """The columns; if none is needed, one that costs little, since rows have to be counted."""
    found = sorted(needed)
    if found:
        return found
    costs = [isinstance(type_, (CharType, VarCharType, VarBinaryType)) + bool(type_.children()) for type_ in types]
    return [costs.index(min(costs))] if costs else []


def _types(node: LogicalNode) -> list[LogicalType]:
    return [part.type for part in node.row_type.fields]


@prunes(TableScan)
def _scan(node: TableScan, needed: frozenset[int]) -> Pruned:
    kept = _or_cheapest(needed, _types(node))
    everything = list(range(len(node.row_type.fields)))
    source = None if node.source is None or kept == everything else node.source.with_projection(kept)
    if source is None:
        return node, {index: index for index in everything}
    places = {old: new for new, old in enumerate(kept)}
    has_key = all(column in places for column in node.primary_key)
    key = tuple(places[column] for column in node.primary_key) if has_key else ()
    pushed = (*node.pushed, PushedProjection(tuple(kept)))
    return replace(node, type=source.produced_type, source=source, primary_key=key, pushed=pushed), places


@prunes(Calc)
def _calc(node: Calc, needed: frozenset[int]) -> Pruned:
    kept = _or_cheapest(needed, _types(node))
    expressions = [node.expressions[index] for index in kept]
    read = inputs_of([*expressions, *([] if node.condition is None else [node.condition])])
    below, places = prune(node.input, read)
    calc = Calc(
        below,
        tuple(moved_inputs(expression, places) for expression in expressions),
        tuple(node.names[index] for index in kept),
        None if node.condition is None else moved_inputs(node.condition, places),
    )
    return calc, {old: new for new, old in enumerate(kept)}


@prunes(WatermarkAssigner)
def _watermarks(node: WatermarkAssigner, needed: frozenset[int]) -> Pruned:
    below, places = prune(node.input, {*needed, node.rowtime, *inputs_of([node.watermark])})
    fields: list[Any] = [None] * len(below.row_type.fields)
    for old, new in places.items():
        fields[new] = node.type.fields[old]
    row_type = RowType([own or part for own, part in zip(fields, below.row_type.fields, strict=True)], nullable=False)
    watermark = moved_inputs(node.watermark, places)
    return replace(node, input=below, type=row_type, rowtime=places[node.rowtime], watermark=watermark), places


@prunes(SetOperation)
def _set_operation(node: SetOperation, needed: frozenset[int]) -> Pruned:
    everything = range(len(node.row_type.fields))
    if node.kind is not SetKind.UNION or not node.all:
        relations = [prune_columns(relation) for relation in node.relations]
        return node.with_inputs(relations), {index: index for index in everything}
    kept = _or_cheapest(needed, _types(node))
    relations = []
    for relation in node.relations:
        below, places = prune(relation, kept)
        relations.append(_selected(below, [places[index] for index in kept]))
    return node.with_inputs(relations), {old: new for new, old in enumerate(kept)}


def _selected(node: LogicalNode, columns: list[int]) -> LogicalNode:
    """The columns in this order."""
    if columns == list(range(len(node.row_type.fields))):
        return node
    chosen = [references(node)[column] for column in columns]
    return Calc(node, tuple(chosen), tuple(reference.name for reference in chosen))


@prunes(Sort)
def _sort(node: Sort, needed: frozenset[int]) -> Pruned:
    below, places = prune(node.input, {*needed, *(key.index for key in node.keys)})
    return replace(node, input=below, keys=tuple(replace(key, index=places[key.index]) for key in node.keys)), places


@prunes(Aggregate)
def _aggregate(node: Aggregate, needed: frozenset[int]) -> Pruned:
    first = len(node.grouping)
    calls = [call for index, call in enumerate(node.calls, first) if index in needed]
    if not node.grouping and not calls:
        calls = list(node.calls[:1])
    arguments = {column for call in calls for column in call.arguments}
    filters = {call.filter for call in calls if call.filter is not None}
    below, places = prune(node.input, {*node.grouping, *arguments, *filters})
    pruned = Aggregate(
        below,
        tuple(places[index] for index in node.grouping),
        tuple(
            replace(
                call,
                arguments=tuple(places[index] for index in call.arguments),
                filter=None if call.filter is None else places[call.filter],
            )
            for call in calls
        ),
        None
        if node.grouping_sets is None
        else tuple(tuple(places[index] for index in group) for group in node.grouping_sets),
        node.state_ttl_ms,
        node.split,
        node.has_row_for_none,
    )
    kept = [*range(first), *(index for index, call in enumerate(node.calls, first) if call in calls)]
    if node.grouping_sets is not None:
        kept.append(first + len(node.calls))
    return pruned, {old: new for new, old in enumerate(kept)}


@prunes(Expand)
def _expand(node: Expand, needed: frozenset[int]) -> Pruned:
    width = len(node.input.row_type.fields)
    below, places = prune(node.input, {*node.grouping, *node.copies, *(index for index in needed if index < width)})
    pruned = Expand(
        below,
        tuple(places[index] for index in node.grouping),
        tuple(tuple(places[index] for index in group) for group in node.grouping_sets),
        tuple(places[index] for index in node.copies),
    )
    offset = len(below.row_type.fields)
    return pruned, {**places, **{width + index: offset + index for index in range(len(node.copies) + 1)}}


@prunes(Join)
def _join(node: Join, needed: frozenset[int]) -> Pruned:
    width = len(node.left.row_type.fields)
    wanted = {*needed, *inputs_of([node.condition])}
    left, left_places = prune(node.left, {index for index in wanted if index < width})
    right, right_places = prune(node.right, {index - width for index in wanted if index >= width})
    offset = len(left.row_type.fields)
    places = {**left_places, **{width + old: offset + new for old, new in right_places.items()}}
    joined = Join(left, right, node.kind, moved_inputs(node.condition, places))
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return joined, left_places
    return joined, places


@prunes(NamedQuery)
def _named_query(node: NamedQuery, needed: frozenset[int]) -> Pruned:
    below, places = prune(node.input, needed)
    return replace(node, input=below), places


@prunes(Sink)
def _sink(node: Sink, needed: frozenset[int]) -> Pruned:
    return replace(node, input=prune_columns(node.input)), {index: index for index in needed}
