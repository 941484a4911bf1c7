"""References to the columns of nodes."""

from __future__ import annotations

from firesteel.table.bound.nodes import InputRef
from firesteel.table.plan.nodes import LogicalNode

__all__ = ["references"]


def references(node: LogicalNode) -> list[InputRef]:
    """One for each column."""
    return [InputRef(part.type, index, part.name) for index, part in enumerate(node.row_type.fields)]
