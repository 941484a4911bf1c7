"""Upserts at the borders of a plan: sources of them get a whole changelog, sinks of them rows by their primary key.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.connectors.in_memory import InMemorySource, batch_of
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()], nullable=False)
>>> source = InMemorySource(row_type, batch_of([(1, 2)], row_type), mode=ChangelogMode.upsert())
>>> print(normalize_upserts(TableScan(ObjectIdentifier("c", "d", "t"), row_type, (), source, (0,))).explain())
ChangelogNormalize(key=[a])
  TableScan(table=[c.d.t])
"""

from __future__ import annotations

from dataclasses import replace

from firesteel.common.types import RowKind
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.expressions.errors import ValidationError
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.streaming import Sink
from firesteel.table.plan.traits import infer_traits
from firesteel.table.plan.upserts import ChangelogNormalize, UpsertMaterialize

__all__ = ["materialize_upserts", "normalize_upserts"]


def normalize_upserts(node: LogicalNode) -> LogicalNode:
    """A scan of upserts as a changelog."""
    if not isinstance(node, TableScan) or node.source is None:
        return node
    kinds = node.source.changelog_mode.kinds
    if RowKind.UPDATE_BEFORE in kinds or RowKind.UPDATE_AFTER not in kinds:
        return node
    if not node.primary_key:
        raise ValidationError(
            f"Table '{node.identifier.as_summary_string()}' produces a changelog stream contains UPDATE_AFTER but no "
            "UPDATE_BEFORE, this requires defining primary key on the table."
        )
    return ChangelogNormalize(node, node.primary_key)


def materialize_upserts(root: LogicalNode, option: str) -> LogicalNode:
    """A sink by whose primary key several rows of the query may be the same, with what keeps them apart.

    ``option`` is ``table.exec.sink.upsert-materialize``: AUTO, FORCE or NONE.
    """
    if not isinstance(root, Sink) or not root.primary_key or option == "NONE":
        return root
    traits = infer_traits([root.input])[root.input]
    accepted: ChangelogMode = root.sink.get_changelog_mode(traits.mode)
    if accepted.is_insert_only or RowKind.UPDATE_BEFORE in accepted.kinds:
        return root
    if option == "AUTO" and (traits.mode.is_insert_only or any(key <= set(root.primary_key) for key in traits.keys)):
        return root
    return replace(root, input=UpsertMaterialize(root.input, root.primary_key))
