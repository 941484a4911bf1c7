"""ORDER BY of a stream: with LIMIT it keeps the first rows, without it sorts by time.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import SortKey, TableScan
>>> from firesteel.types.logical import RowType
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a"], [DataTypes.INT()]))
>>> print(temporal_sort(Sort(scan, (SortKey(0, descending=True),), 2, 3)).describe())
SortLimit(orderBy=[a DESC NULLS FIRST], offset=[2], fetch=[3])
>>> temporal_sort(Sort(scan, (SortKey(0),)))
Traceback (most recent call last):
    ...
firesteel.table.bound.errors.ValidationError: Sort on a non-time-attribute field is not supported.
Hint: Add LIMIT, or sort by a time attribute first.
"""

from __future__ import annotations

from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.nodes import LogicalNode, Sort, Values
from firesteel.table.plan.ranks import Rank, TemporalSort
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime

__all__ = ["temporal_sort"]


def temporal_sort(node: LogicalNode) -> LogicalNode:
    """A Sort as what a stream can do."""
    if not isinstance(node, Sort):
        return node
    if node.fetch == 0:
        return Values(node.row_type, ())
    if node.fetch is not None:
        end = node.offset + node.fetch
        return Rank(node.input, (), node.keys, node.offset + 1, end, is_limit=True)
    if node.offset:
        raise ValidationError("FETCH is missed, which on streaming table is not supported currently.")
    first = node.keys[0]
    type_ = node.row_type.fields[first.index].type
    if first.descending or not (is_rowtime(type_) or is_proctime(type_)):
        raise ValidationError(
            "Sort on a non-time-attribute field is not supported.",
            position=node.place,
            hint="Add LIMIT, or sort by a time attribute first.",
        )
    return TemporalSort(node.input, node.keys)
