"""A value that is computed from a time attribute is an ordinary timestamp: rows are not in the order of it.

The types that a query shows keep the attribute, as Flink's do.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.bound.nodes import InputRef
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.types.logical import RowType, TimestampKind, TimestampType
>>> rowtime = TimestampType(3, TimestampKind.ROWTIME)
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["ts"], [rowtime]))
>>> time = InputRef(rowtime, 0, "ts")
>>> print(materialize_times(Project(scan, (time, call("GREATEST", [time, time])), ("ts", "later"))).row_type)
ROW<`ts` TIMESTAMP(3) *ROWTIME*, `later` TIMESTAMP(3)> NOT NULL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firesteel.table.bound.nodes import Call, Case, Expression, FieldAccess, InputRef, walk
from firesteel.table.plan.correlates import Unnest
from firesteel.table.plan.nodes import Aggregate, Filter, Join, LogicalNode, Project
from firesteel.table.plan.over import Over
from firesteel.table.plan.rewriting import transform
from firesteel.table.plan.time_attributes import as_rowtime, is_rowtime, materialized, regular
from firesteel.table.plan.time_joins import TemporalTableJoin
from firesteel.table.plan.windows import WindowTableFunction
from firesteel.types.logical import LocalZonedTimestampType, RowField, TimestampType

__all__ = ["materialize_times", "with_input_types"]


def materialize_times(node: LogicalNode) -> LogicalNode:
    """A node whose inputs have been rewritten."""
    match node:
        case Project():
            fields = node.input.row_type.fields
            expressions = tuple(_computed(with_input_types(part, fields)) for part in node.expressions)
            return node if expressions == node.expressions else replace(node, expressions=expressions)
        case Filter():
            condition = with_input_types(node.condition, node.input.row_type.fields)
            return node if condition == node.condition else replace(node, condition=condition)
        case Join():
            both = [*node.left.row_type.fields, *node.right.row_type.fields]
            condition = with_input_types(node.condition, both)
            return node if condition == node.condition else replace(node, condition=condition)
        case Aggregate():
            calls = tuple(replace(call, type=materialized(call.type)) for call in node.calls)
            return node if calls == node.calls else replace(node, calls=calls)
        case Over():
            groups = tuple(
                replace(group, calls=tuple(replace(call, type=materialized(call.type)) for call in group.calls))
                for group in node.groups
            )
            return node if groups == node.groups else replace(node, groups=groups)
        case WindowTableFunction() if node.is_group_window:
            below = _with_rowtime(node.input, node.time)
            return node if below is node.input else replace(node, input=below)
        case TemporalTableJoin():
            below = _with_any_rowtime(node.right)
            return node if below is node.right else replace(node, right=below)
        case Unnest():
            elements = materialized(node.elements)
            return node if elements == node.elements else replace(node, elements=elements)
    return node


def with_input_types(expression: Expression, fields: Sequence[RowField]) -> Expression:
    """The expression with references that are time attributes only where the column of the input is one."""

    def changed(part: Expression) -> Expression:
        if isinstance(part, InputRef) and regular(part.type) is not part.type:
            own = fields[part.index].type
            return part if regular(own) is not own else replace(part, type=regular(part.type))
        return part

    return transform(expression, changed)


def _with_any_rowtime(node: LogicalNode) -> LogicalNode:
    """The versions of a temporal join: Flink takes a computed column such as MAX(ts) if there is no other."""
    if any(is_rowtime(part.type) for part in node.row_type.fields):
        return node
    changed = (_with_rowtime(node, column) for column in range(len(node.row_type.fields)))
    return next((new for new in changed if new is not node), node)


def _with_rowtime(node: LogicalNode, column: int) -> LogicalNode:
    """The relation with a computed column as event time: Flink's group windows take one, the newer functions do not."""
    if not isinstance(node.row_type.fields[column].type, (TimestampType, LocalZonedTimestampType)):
        return node
    if isinstance(node, Filter):
        below = _with_rowtime(node.input, column)
        return node if below is node.input else replace(node, input=below)
    if isinstance(node, Aggregate) and column >= len(node.grouping):
        place = column - len(node.grouping)
        call = node.calls[place]
        if not any(is_rowtime(node.input.row_type.fields[argument].type) for argument in call.arguments):
            return node
        calls = (*node.calls[:place], replace(call, type=as_rowtime(call.type)), *node.calls[place + 1 :])
        return replace(node, calls=calls)
    if not isinstance(node, Project):
        return node
    expression = node.expressions[column]
    if isinstance(expression, InputRef):
        below = _with_rowtime(node.input, expression.index)
        if below is node.input:
            return node
        changed: Expression = replace(expression, type=below.row_type.fields[expression.index].type)
    elif any(is_rowtime(part.type) for part in walk(expression)) and not is_rowtime(expression.type):
        below, changed = node.input, replace(expression, type=as_rowtime(expression.type))
    else:
        return node
    expressions = (*node.expressions[:column], changed, *node.expressions[column + 1 :])
    return replace(node, input=below, expressions=expressions)


def _computed(expression: Expression) -> Expression:
    """The expression of a column with the type of a value, unless it is a column of the input or PROCTIME()."""
    if not isinstance(expression, (Call, Case, FieldAccess)) or not expression.children():
        return expression
    type_ = materialized(expression.type)
    return expression if type_ == expression.type else replace(expression, type=type_)
