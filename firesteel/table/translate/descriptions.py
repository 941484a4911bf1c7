"""Texts of operators in the plans of jobs, with the names that Flink has for them."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.plan.nodes import Aggregate, AggregateCall, LogicalNode
from firesteel.table.plan.windows import WindowAggregate, WindowColumn

__all__ = ["describe_expand", "describe_local", "describe_operator"]


def describe_operator(node: LogicalNode) -> str:
    """What the operator of a node does; for most nodes that is what EXPLAIN shows."""
    if isinstance(node, Aggregate):
        split = "" if node.split is None else f"partialFinalType=[{node.split.phase}]"
        return _text("GroupAggregate", _grouping(node), split, _selected(node))
    if isinstance(node, WindowAggregate) and node.time is not None:
        names = node.input.row_type.field_names
        window = f"window=[{node.window}, time_col=[{names[node.time]}]]"
        name = "WindowAggregate" if node.emit is None else "GroupWindowAggregate"
        text = _text(name, _grouping(node), window, _selected(node))
        return text if node.emit is None else f"{text[:-1]}, emit=[{node.emit}])"
    return node.describe()


def describe_local(node: Aggregate | WindowAggregate) -> str:
    """What the local phase of an aggregation does."""
    return f"Local{describe_operator(node)}"


def describe_expand(node: Aggregate) -> str:
    """What is done with the rows of an aggregation by grouping sets."""
    names = node.input.row_type.field_names
    sets = (f"({', '.join(names[column] for column in group)})" for group in node.grouping_sets or ())
    return f"Expand(groupingSets=[{', '.join(sets)}])"


def _text(name: str, grouping: Sequence[str], kind: str, selected: Sequence[str]) -> str:
    parts = [f"groupBy=[{', '.join(grouping)}]"] if grouping else []
    parts += [kind] if kind else []
    parts.append(f"select=[{', '.join(selected)}]")
    return f"{name}({', '.join(parts)})"


def _grouping(node: Aggregate | WindowAggregate) -> list[str]:
    names = node.input.row_type.field_names
    return [names[column] for column in node.grouping if not isinstance(column, WindowColumn)]


def _selected(node: Aggregate | WindowAggregate) -> list[str]:
    names = node.input.row_type.field_names
    keys = list(node.row_type.field_names[: len(node.grouping)])
    return [*keys, *(_call(call, names) for call in node.calls)]


def _call(call: AggregateCall, names: Sequence[str]) -> str:
    return f"{call.describe(names)} AS {call.name}"
