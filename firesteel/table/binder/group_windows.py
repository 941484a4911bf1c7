"""Group windows: TUMBLE, HOP and SESSION of a time attribute in GROUP BY, and their auxiliary functions.

They become a window table function below the grouping, whose columns stand in place of the calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from firesteel.table.binder.query_expressions import QueryExpressionBinder
from firesteel.table.binder.query_scope import QueryScope
from firesteel.table.binder.scope import ScopeColumn
from firesteel.table.binder.table_functions.windows import PROCTIME_IN_BATCH, interval_millis, with_times
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import LogicalNode, Project
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.table.plan.window_kinds import HoppingWindow, SessionWindow, TumblingWindow, Window
from firesteel.table.plan.windows import WindowTableFunction
from firesteel.types.logical import LocalZonedTimestampType, TimestampType

__all__ = ["bind_group_window"]

_INTERVALS = {"TUMBLE": 1, "HOP": 2, "SESSION": 1}
_NAMES = ("$window_start", "$window_end", "$window_time")
_AUXILIARY = {
    f"{function}_{suffix}": (function, column)
    for function in _INTERVALS
    for suffix, column in zip(("START", "END", "ROWTIME", "PROCTIME"), (*_NAMES, _NAMES[2]), strict=True)
}


class GroupWindow(NamedTuple):
    """A SELECT with a group window, over a relation that has the window's columns."""

    select: exp.Select
    node: LogicalNode
    rows: QueryExpressionBinder


def bind_group_window(select: exp.Select, node: LogicalNode, rows: QueryExpressionBinder) -> GroupWindow | None:
    """The SELECT with columns in place of calls; None if it has no group window."""
    calls = list(_group_windows(select))
    own = (call for call in select.find_all(nodes.Call) if _is_own(call, select))
    auxiliary = [call for call in own if call.function_name in _AUXILIARY]
    if not calls:
        if auxiliary:
            raise _unmatched(auxiliary[0])
        return None
    if len(set(calls)) > 1:
        raise ValidationError("Only a single window group function may be used in GROUP BY.")
    window = calls[0]
    time = rows.bind(window.expressions[0])
    kind = _window(window, rows)
    _check_time(window, time, rows._session.is_streaming)
    for call in auxiliary:
        _check_auxiliary(call, window, time)
    width = len(node.row_type.fields)
    if not isinstance(time, InputRef):
        fields = node.row_type.fields
        same = tuple(InputRef(part.type, index, part.name) for index, part in enumerate(fields))
        node = Project(node, (*same, time), (*node.row_type.field_names, "$time"))
        time = InputRef(time.type, width, "$time")
    is_bounded = not rows._session.is_streaming
    if is_bounded:
        node = with_times(node, time.index)
    function = WindowTableFunction(node, kind, time.index, (), _NAMES, is_group_window=True, is_bounded=is_bounded)
    columns = [
        *rows.scope.columns,
        *(ScopeColumn(part.name, part.type) for part in function.row_type.fields[len(rows.scope.columns) :]),
    ]
    scope = QueryScope(columns, rows.scope.outer, rows.scope.merged)
    binder = QueryExpressionBinder(scope, rows._bind_query, rows._sql, rows._session)
    return GroupWindow(_replaced(select, window), function, binder)


def _group_windows(select: exp.Select) -> Iterator[nodes.Call]:
    group = select.args.get("group")
    for element in () if group is None else group.expressions:
        for call in element.find_all(nodes.Call):
            if call.function_name in _INTERVALS:
                if call is not element:
                    raise ValidationError(f"{call.function_name} must be an element of GROUP BY by itself.")
                yield call


def _is_own(call: exp.Expression, select: exp.Select) -> bool:
    """Whether a call belongs to the SELECT, not to a query in it."""
    return call.find_ancestor(exp.Select) is select


def _window(call: nodes.Call, rows: QueryExpressionBinder) -> Window:
    name = call.function_name
    arguments = call.expressions[1:]
    if len(arguments) != _INTERVALS[name]:
        raise ValidationError(
            f"Invalid number of arguments to function '{name}'. Was expecting {1 + _INTERVALS[name]} arguments",
            hint="An alignment time is not supported; the window table functions take an offset.",
        )
    sizes = [interval_millis(rows.bind(argument), name) for argument in arguments]
    if any(size <= 0 for size in sizes):
        raise ValidationError(f"The intervals of {name} must be positive.")
    if name == "TUMBLE":
        return TumblingWindow(sizes[0])
    return SessionWindow(sizes[0]) if name == "SESSION" else HoppingWindow(sizes[1], 0, sizes[0])


def _check_time(call: nodes.Call, time: Expression, is_streaming: bool) -> None:
    if is_proctime(time.type) and not is_streaming:
        raise ValidationError("Windows of processing time are not supported in batch mode.", hint=PROCTIME_IN_BATCH)
    if is_rowtime(time.type) or is_proctime(time.type):
        return
    name, type_ = call.function_name, time.type.as_summary_string()
    if not isinstance(time.type, (TimestampType, LocalZonedTimestampType)):
        raise ValidationError(
            f"Cannot apply '${name}' to a value of type {type_}. "
            f"Supported form(s): '${name}(<DATETIME>, <DATETIME_INTERVAL>)'"
        )
    if is_streaming:
        raise ValidationError(
            f"Window aggregate can only be defined over a time attribute column, but {type_} encountered.",
            hint="Declare a WATERMARK for the column in its table.",
        )


def _check_auxiliary(call: nodes.Call, window: nodes.Call, time: Expression) -> None:
    if _AUXILIARY[call.function_name][0] != window.function_name or call.expressions != window.expressions:
        raise _unmatched(call)
    if call.function_name.endswith("_ROWTIME") and is_proctime(time.type):
        raise ValidationError("A proctime window cannot provide a rowtime attribute.")
    if call.function_name.endswith("_PROCTIME") and not is_proctime(time.type):
        raise ValidationError("PROCTIME window property can only be applied to proctime windows.")


def _unmatched(call: nodes.Call) -> ValidationError:
    name = call.function_name
    return ValidationError(
        f"Call to auxiliary group function '{name}' must have matching call to group function "
        f"'${_AUXILIARY[name][0]}' in GROUP BY clause"
    )


def _replaced(select: exp.Select, window: nodes.Call) -> exp.Select:
    """The SELECT with the columns of the window in place of calls; queries in it stay as they are."""

    def change(node: exp.Expression) -> exp.Expression:
        if isinstance(node, nodes.Call) and node.function_name in _AUXILIARY:
            return exp.Column(this=exp.to_identifier(_AUXILIARY[node.function_name][1], quoted=True))
        return node

    copy = select.copy()
    for position, item in enumerate(list(copy.expressions)):
        if isinstance(item, nodes.Call) and item.function_name in _AUXILIARY:
            item.replace(exp.alias_(item.copy(), f"EXPR${position}", quoted=True))
    for call in list(copy.find_all(nodes.Call)):
        if call.function_name in _AUXILIARY and _is_own(call, copy):
            call.replace(change(call))
    group = copy.args["group"]
    columns = exp.Tuple(expressions=[exp.Column(this=exp.to_identifier(name, quoted=True)) for name in _NAMES])
    group.set("expressions", [columns.copy() if element == window else element for element in group.expressions])
    return copy
