"""Columns are time attributes only as long as the rows are in the order of them: not behind a regular join.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.bound.nodes import InputRef
>>> from firesteel.table.plan.joins import StreamingJoin
>>> from firesteel.table.plan.nodes import JoinKind, TableScan
>>> from firesteel.types.logical import RowType, TimestampKind, TimestampType
>>> rowtime = TimestampType(3, TimestampKind.ROWTIME)
>>> row_type = RowType.of(["a", "ts"], [DataTypes.INT(), rowtime])
>>> one, other = (TableScan(ObjectIdentifier("c", "d", name), row_type) for name in "tu")
>>> join = StreamingJoin(one, other, JoinKind.INNER, (0,), (0,), (False,))
>>> print(plain_times(Project(join, (InputRef(rowtime, 1, "ts"),), ("x",))).row_type)
ROW<`x` TIMESTAMP(3)> NOT NULL
"""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.nodes import LogicalNode, Project
from firesteel.table.plan.streaming import Calc
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.table.plan.windows import WindowAggregate, WindowTableFunction
from firesteel.table.rules.times.materialize_times import with_input_types

__all__ = ["plain_times"]


def plain_times(node: LogicalNode) -> LogicalNode:
    """A node whose inputs have been rewritten."""
    if isinstance(node, (WindowTableFunction, WindowAggregate)) and node.time is not None:
        type_ = node.input.row_type.fields[node.time].type
        if not node.is_bounded and not is_rowtime(type_) and not is_proctime(type_):
            raise ValidationError(
                "The window function requires the timecol is a time attribute type, but is "
                f"{type_.as_summary_string()}.",
                hint="A computed value is no time attribute, nor one behind a regular join. Declare the WATERMARK of "
                "a computed column in its table; join by time, or in windows.",
            )
    if not isinstance(node, (Project, Calc)):
        return node
    fields = node.input.row_type.fields
    expressions = tuple(with_input_types(expression, fields) for expression in node.expressions)
    return node if expressions == node.expressions else replace(node, expressions=expressions)
