"""Conditions go to sources that can evaluate them.

>>> from firesteel.connectors.generators.nexmark import NexmarkConfig
>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.connectors.nexmark.columns import ROW_TYPE
>>> from firesteel.table.connectors.nexmark.source import NexmarkTableSource
>>> from firesteel.table.rules.references import references
>>> source = NexmarkTableSource(NexmarkConfig(), tuple((name,) for name in ROW_TYPE.field_names), ROW_TYPE)
>>> scan = TableScan(ObjectIdentifier("c", "d", "nexmark"), ROW_TYPE, source=source)
>>> kind = references(scan)[0]
>>> pushed = filter_sources(Calc(scan, (kind,), ("kind",), call("EQUALS", [kind, Literal(kind.type, 2)])))
>>> print(pushed.explain())
Calc(select=[2 AS kind])
  TableScan(table=[c.d.nexmark])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firesteel.table.bound.nodes import Call, Case, Expression, InputRef, Literal, walk
from firesteel.table.bound.session import Session
from firesteel.table.connector.push_downs import PushedFilters
from firesteel.table.evaluation.folding import fold
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.rewriting import inlined, transform
from firesteel.table.plan.streaming import Calc, WatermarkAssigner
from firesteel.table.rules.conjunctions import conjunction, conjuncts, is_deterministic

__all__ = ["filter_sources"]

Constants = Mapping[int, Literal]
"""Columns that have one value in all rows, since the source has a condition that says so."""
_FOLDED = {"EQUALS", "NOT_EQUALS", "AND", "OR", "NOT", "IN"}
"""Functions whose results do not depend on the session."""


@dataclass(frozen=True)
class _Pushed:
    node: LogicalNode
    is_left: Sequence[bool]
    """For each condition whether it remains to be evaluated."""
    constants: Constants


def filter_sources(node: LogicalNode) -> LogicalNode:
    """A Calc over a source, or over a source with watermarks."""
    if not isinstance(node, Calc) or node.condition is None:
        return node
    conditions = list(conjuncts(node.condition))
    pushed = _push(node.input, conditions)
    if pushed is None:
        return node
    left = [one for one, is_left in zip(conditions, pushed.is_left, strict=True) if is_left]
    condition = conjunction(left) if left else None
    return Calc(
        pushed.node,
        tuple(_with_constants(expression, pushed.constants) for expression in node.expressions),
        node.names,
        None if condition is None else _with_constants(condition, pushed.constants),
    )


def _push(node: LogicalNode, conditions: Sequence[Expression]) -> _Pushed | None:
    match node:
        case TableScan():
            return _push_to_source(node, conditions)
        case WatermarkAssigner():
            scan = node.input.input if isinstance(node.input, Calc) else node.input
            source = scan.source if isinstance(scan, TableScan) else None
            if source is None or not source.filters_before_watermarks:
                return None
            below = _push(node.input, conditions)
            return None if below is None else replace(below, node=replace(node, input=below.node))
        case Calc(condition=None):
            return _push_through(node, conditions)
    return None


def _push_to_source(node: TableScan, conditions: Sequence[Expression]) -> _Pushed | None:
    found = None if node.source is None else node.source.with_filters(conditions)
    if found is None:
        return None
    source, rest = found
    is_left = [condition in rest for condition in conditions]
    constants = {}
    for condition, left in zip(conditions, is_left, strict=True):
        if not left and isinstance(condition, Call) and condition.function == "EQUALS":
            match condition.arguments:
                case (InputRef() as column, Literal() as value) | (Literal() as value, InputRef() as column):
                    constants[column.index] = Literal(column.type, value.value)
    remaining = tuple(condition for condition, left in zip(conditions, is_left, strict=True) if left)
    pushed = (*node.pushed, PushedFilters(tuple(conditions), remaining))
    return _Pushed(replace(node, source=source, pushed=pushed), is_left, constants)


def _push_through(node: Calc, conditions: Sequence[Expression]) -> _Pushed | None:
    if not all(map(is_deterministic, node.expressions)):
        return None
    below = _push(node.input, [inlined(condition, node.expressions) for condition in conditions])
    if below is None:
        return None
    expressions = tuple(_with_constants(expression, below.constants) for expression in node.expressions)
    constants = {index: one for index, one in enumerate(expressions) if isinstance(one, Literal)}
    return _Pushed(Calc(below.node, expressions, node.names), below.is_left, constants)


def _with_constants(expression: Expression, constants: Constants) -> Expression:
    """The expression with values in place of columns, and without cases that cannot be."""

    def change(part: Expression) -> Expression:
        if isinstance(part, InputRef) and part.index in constants:
            return Literal(part.type, constants[part.index].value)
        return _decided(part) if isinstance(part, Case) else part

    return transform(expression, change) if constants else expression


def _decided(case: Case) -> Expression:
    conditions: list[Expression] = []
    results: list[Expression] = []
    default = case.default
    for condition, result in zip(case.conditions, case.results, strict=True):
        if all(isinstance(part, Literal) or _is_folded(part) for part in walk(condition)):
            condition = fold(condition, Session())
        if not isinstance(condition, Literal):
            conditions.append(condition)
            results.append(result)
        elif condition.value:
            default = result
            break
    return (
        replace(case, conditions=tuple(conditions), results=tuple(results), default=default) if conditions else default
    )


def _is_folded(part: Expression) -> bool:
    return isinstance(part, Call) and part.function in _FOLDED
