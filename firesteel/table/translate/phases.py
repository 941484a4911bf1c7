"""Texts of the operators that run a node, for EXPLAIN."""

from __future__ import annotations

from firesteel.table.plan.nodes import Aggregate, LogicalNode
from firesteel.table.plan.windows import WindowAggregate
from firesteel.table.translate import aggregates, windows
from firesteel.table.translate.descriptions import describe_expand, describe_local, describe_operator
from firesteel.table.translate.translator import Translator

__all__ = ["describe_phases"]


def describe_phases(node: LogicalNode, translator: Translator) -> tuple[str, list[str]]:
    """What the operator of a node does, and what those do that run before its rows are exchanged."""
    text = describe_operator(node)
    before: list[str] = []
    match node:
        case Aggregate():
            is_split = aggregates.has_local_phase(node, translator)
        case WindowAggregate():
            is_split = windows.has_local_phase(node, translator)
        case _:
            return node.describe(), before
    if is_split:
        before.append(describe_local(node))
        text = f"Global{text}"
    if isinstance(node, Aggregate) and node.grouping_sets is not None:
        before.append(describe_expand(node))
    return text, before
