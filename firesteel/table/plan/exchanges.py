"""How rows reach the operators of a plan: by key, all in one subtask, or where they are."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.plan.changelogs import ChangelogNormalize, CompactingMaterialize, UpsertMaterialize
from firesteel.table.plan.joins import KeyedJoin
from firesteel.table.plan.nodes import Aggregate, LogicalNode
from firesteel.table.plan.over import Over
from firesteel.table.plan.ranks import Rank, TemporalSort
from firesteel.table.plan.windows import WindowAggregate, WindowRank, WindowTableFunction

__all__ = ["FORWARD", "distributions"]

FORWARD = "forward"
"""Rows stay in the subtask in which they are."""


def distributions(node: LogicalNode) -> list[str]:
    """For each input of a node how its rows are exchanged: ``hash[columns]``, ``single`` or ``forward``.

    >>> from firesteel.table import DataTypes
    >>> from firesteel.table.plan.nodes import Values
    >>> from firesteel.types.logical import RowType
    >>> rows = Values(RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()]), ())
    >>> distributions(Aggregate(rows, (1,))), distributions(Aggregate(rows, ()))
    (['hash[b]'], ['single'])
    """
    match node:
        case KeyedJoin():
            return [_by(node.left, node.left_keys), _by(node.right, node.right_keys)]
        case Aggregate() if node.grouping_sets is not None:
            return [_by(node.input, node.grouping, "$e")]
        case Aggregate():
            return [_by(node.input, node.grouping)]
        case WindowAggregate():
            return [_by(node.input, [column for column in node.grouping if isinstance(column, int)])]
        case Over():
            return [_by(node.input, node.groups[0].partition)]
        case Rank() | WindowRank():
            return [_by(node.input, node.partition)]
        case WindowTableFunction() if node.partition:
            return [_by(node.input, node.partition)]
        case TemporalSort():
            return ["single"]
        case ChangelogNormalize() | UpsertMaterialize() | CompactingMaterialize():
            return [_by(node.input, node.key)]
    return [FORWARD] * len(node.inputs())


def _by(below: LogicalNode, columns: Sequence[int], *added: str) -> str:
    names = [*(below.row_type.field_names[column] for column in columns), *added]
    return f"hash[{', '.join(names)}]" if names else "single"
