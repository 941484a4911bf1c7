"""A grouping by the bounds of windows becomes a window aggregation.

If the windows are those of a window table function below, they are computed from the time attribute, in slices; then
rows are not repeated. Otherwise the aggregation reads the bounds of the windows in its rows. Groups that are not the
sessions of a session window are those of a regular aggregation, as in Flink. GROUPING SETS become a union.

>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.table.plan.window_kinds import TumblingWindow
>>> from firesteel.types.logical import IntType, RowType, TimestampKind, TimestampType
>>> time = TimestampType(3, TimestampKind.ROWTIME)
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["k", "ts"], [IntType(), time], nullable=False))
>>> print(window_aggregates(Aggregate(WindowTableFunction(scan, TumblingWindow(60_000), 1), (0, 2, 3))).explain())
WindowAggregate(groupBy=[k], window=[TUMBLE(size=[1 min]), time_col=[ts]])
  Calc(select=[k, ts])
    TableScan(table=[c.d.t])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from firesteel.table.bound.nodes import Expression, InputRef, Literal
from firesteel.table.plan.nodes import Aggregate, AggregateCall, LogicalNode, SetKind, SetOperation
from firesteel.table.plan.streaming import Calc, inputs_of
from firesteel.table.plan.window_kinds import SessionWindow
from firesteel.table.plan.windows import WindowAggregate, WindowColumn, WindowTableFunction
from firesteel.table.rules.references import references
from firesteel.table.rules.windows.properties import WindowProperties, window_properties
from firesteel.types.logical import BigIntType

__all__ = ["moved_calls", "window_aggregates"]


def window_aggregates(node: LogicalNode) -> LogicalNode:
    """A node whose inputs are rewritten already."""
    if not isinstance(node, Aggregate):
        return node
    windows = window_properties(node.input)
    if windows is None:
        return node
    grouping = tuple(windows.columns.get(column, column) for column in node.grouping)
    if WindowColumn.START not in grouping or WindowColumn.END not in grouping:
        return node
    if node.grouping_sets is not None:
        return _by_sets(node, node.grouping_sets, windows)
    found = _sliced(node, grouping)
    if found is None and not isinstance(windows.window, SessionWindow):
        found = _attached(node, grouping, windows)
    return node if found is None else found


def _by_sets(node: Aggregate, sets: Sequence[tuple[int, ...]], windows: WindowProperties) -> LogicalNode:
    """The union of a window aggregation for each set; sets without the window are those of a regular aggregation."""
    for kind in _BOUNDS:
        if not all(any(windows.columns.get(column) is kind for column in group) for group in sets):
            return node
    fields = node.row_type.fields
    parts = []
    for group in sets:
        columns = tuple(dict.fromkeys(group))
        single = window_aggregates(replace(node, grouping=columns, grouping_sets=None))
        own = references(single)
        keys = [
            own[columns.index(column)] if column in columns else Literal(fields[place].type.copy(), None)
            for place, column in enumerate(node.grouping)
        ]
        bits = ["0" if column in columns else "1" for column in node.grouping]
        number = Literal(BigIntType(nullable=False), int("".join(bits), 2))
        made = (*keys, *own[len(columns) :], number)
        parts.append(Calc(single, made, tuple(node.row_type.field_names)))
    return SetOperation(SetKind.UNION, tuple(parts), all=True)


def _sliced(node: Aggregate, grouping: tuple[int | WindowColumn, ...]) -> LogicalNode | None:
    """The aggregation without the table function; None if something else reads the columns of windows."""
    below = node.input
    calc = below if isinstance(below, Calc) else None
    function = below if calc is None else calc.input
    if not isinstance(function, WindowTableFunction):
        return None
    expressions: Sequence[Expression] = references(function) if calc is None else calc.expressions
    condition = None if calc is None else calc.condition
    kept = [column for column in grouping if isinstance(column, int)]
    kept = list(dict.fromkeys([*kept, *_arguments(node.calls)]))
    width = len(function.input.row_type.fields)
    read = inputs_of([*(expressions[column] for column in kept), *([] if condition is None else [condition])])
    if any(column >= width for column in read):
        return None
    if isinstance(function.window, SessionWindow) and not _is_session_key(function, grouping, expressions):
        # sessions of one key, grouped by another
        return None
    time = references(function.input)[function.time]
    chosen = [*(expressions[column] for column in kept), time]
    names = [below.row_type.field_names[column] for column in kept]
    places = {column: place for place, column in enumerate(kept)}
    own_names = tuple(below.row_type.field_names[column] for column in node.grouping)
    time_name = next(name for name in (time.name, "$time") if name not in names)
    return WindowAggregate(
        Calc(function.input, tuple(chosen), (*names, time_name), condition),
        function.window,
        function.time_type,
        tuple(places[column] if isinstance(column, int) else column for column in grouping),
        own_names,
        moved_calls(node.calls, places),
        time=len(kept),
        is_bounded=function.is_bounded,
        emit=function.emit,
    )


def _is_session_key(
    function: WindowTableFunction, grouping: Sequence[int | WindowColumn], expressions: Sequence[Expression]
) -> bool:
    """Whether rows are grouped by the key of the sessions."""
    if function.is_group_window:
        return True
    keys = [expressions[column] for column in grouping if isinstance(column, int)]
    columns = {key.index for key in keys if isinstance(key, InputRef)}
    return len(columns) == len(keys) and columns == set(function.partition)


def _attached(node: Aggregate, grouping: tuple[int | WindowColumn, ...], windows: WindowProperties) -> LogicalNode:
    names = node.input.row_type.field_names
    start, end = (next(c for c in node.grouping if windows.columns.get(c) is kind) for kind in _BOUNDS)
    return WindowAggregate(
        node.input,
        windows.window,
        windows.time_type,
        grouping,
        tuple(names[column] for column in node.grouping),
        node.calls,
        start=start,
        end=end,
    )


_BOUNDS = (WindowColumn.START, WindowColumn.END)


def _arguments(calls: Sequence[AggregateCall]) -> list[int]:
    filters = (call.filter for call in calls if call.filter is not None)
    return [*(column for call in calls for column in call.arguments), *filters]


def moved_calls(calls: Sequence[AggregateCall], places: Mapping[int, int]) -> tuple[AggregateCall, ...]:
    """The calls with columns at other places of the input."""
    return tuple(
        replace(
            call,
            arguments=tuple(places[column] for column in call.arguments),
            filter=None if call.filter is None else places[call.filter],
        )
        for call in calls
    )
