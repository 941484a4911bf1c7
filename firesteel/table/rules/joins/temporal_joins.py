"""A join FOR SYSTEM_TIME AS OF event time is one with the versions of a table by its primary key.

In processing time it is a lookup join.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.bound.nodes import InputRef
>>> from firesteel.table.plan.nodes import JoinKind, TableScan
>>> from firesteel.types.logical import RowType, TimestampKind, TimestampType
>>> row_type = RowType.of(["a", "ts"], [DataTypes.INT(), TimestampType(3, TimestampKind.ROWTIME)])
>>> orders = TableScan(ObjectIdentifier("c", "d", "orders"), row_type)
>>> rates = TableScan(ObjectIdentifier("c", "d", "rates"), row_type, primary_key=(0,))
>>> equal = call("EQUALS", [InputRef(DataTypes.INT(), 0, "a"), InputRef(DataTypes.INT(), 2, "a")])
>>> print(temporal_joins(TemporalTableJoin(orders, rates, JoinKind.LEFT, equal, 1)).explain())
TemporalJoin(joinType=[LEFT], where=[a = a], leftTimeAttribute=[ts], rightTimeAttribute=[ts])
  TableScan(table=[c.d.orders])
  TableScan(table=[c.d.rates])
"""

from __future__ import annotations

from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.joins import keys_of
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.table.plan.time_joins import TemporalJoin, TemporalTableJoin
from firesteel.table.rules.conjunctions import conjunction
from firesteel.table.rules.joins.lookup_joins import lookup_join
from firesteel.table.rules.joins.streaming_joins import equi_condition

__all__ = ["temporal_joins"]


def temporal_joins(node: LogicalNode) -> LogicalNode:
    """A node whose inputs have been rewritten."""
    if not isinstance(node, TemporalTableJoin):
        return node
    if is_proctime(node.left.row_type.fields[node.time].type):
        return lookup_join(node)
    found = equi_condition(node)
    times = [index for index, part in enumerate(found.right.row_type.fields) if is_rowtime(part.type)]
    if len(times) != 1:
        raise ValidationError(
            "Event-Time Temporal Table Join requires both primary key and row time attribute in versioned table, "
            "but no row time attribute can be found."
        )
    keys = keys_of(found.right)
    if not keys:
        raise ValidationError(
            "Temporal Table Join requires primary key in versioned table, but no primary key can be found."
        )
    if not any(key <= set(found.right_keys) for key in keys):
        names = found.right.row_type.field_names
        smallest: frozenset[int] = min(keys, key=len)
        wanted = ", ".join(names[column] for column in sorted(smallest))
        raise ValidationError(
            "Temporal table's primary key must be included in the equivalence condition of temporal join: "
            f"the key is [{wanted}]."
        )
    joined = TemporalJoin(
        found.left,
        found.right,
        node.kind,
        found.left_keys,
        found.right_keys,
        found.null_safe,
        conjunction(found.rest),
        node.time,
        times[0],
    )
    return found.restored(joined, node)
