"""Tables between two steps: grouped, with windows, and both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.dsl.windows import GroupWindow, OverWindow
from firesteel.table.environment.function_operations import (
    AggregatedTable,
    FlatAggregateTable,
    WindowAggregatedTable,
    aggregated,
)
from firesteel.table.environment.planning.selection import nodes_of, only_names, without_alias
from firesteel.table.parser import nodes

if TYPE_CHECKING:
    from firesteel.table.environment.table import Table

__all__ = ["GroupWindowedTable", "GroupedTable", "OverWindowedTable", "WindowGroupedTable"]


class GroupedTable:
    """A table whose rows are grouped by some values."""

    def __init__(self, table: Table, keys: Sequence[exp.Expression]) -> None:
        self._table = table
        self._keys = keys

    def select(self, *fields: Any) -> Table:
        """The columns of each group: its values and aggregate functions."""
        items = [_with_keys(item, self._keys) for item in nodes_of(fields, "select")]
        return self._table._selected(items, group=exp.Group(expressions=[without_alias(key) for key in self._keys]))

    def aggregate(self, func: Any) -> AggregatedTable:
        """Aggregates each group with an aggregate function; ``select`` follows."""
        return AggregatedTable(aggregated(self, func, is_flat=False))

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """Aggregates each group with a table aggregate function; ``select`` follows."""
        return FlatAggregateTable(aggregated(self, func, is_flat=True))


class GroupWindowedTable:
    """A table with a window, by whose alias it is to be grouped."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table = table
        self._window = window

    def group_by(self, *fields: Any) -> WindowGroupedTable:
        """Groups the rows by the window's alias, and by other values."""
        keys = nodes_of(fields, "group_by")
        others = [key for key in keys if nodes.column_path(key) != (self._window.name,)]
        if len(others) == len(keys):
            raise ValidationError(
                f"GroupBy must contain exactly one window alias: '{self._window.name}' is missing.",
                hint=f"Write group_by(col('{self._window.name}'), ...).",
            )
        return WindowGroupedTable(self._table, self._window, others)


class WindowGroupedTable:
    """A table that is grouped by a window and other values."""

    def __init__(self, table: Table, window: GroupWindow, keys: Sequence[exp.Expression]) -> None:
        self._table = table
        self._window = window
        self._keys = keys

    def select(self, *fields: Any) -> Table:
        """The columns of each window and group: properties of the window, values, and aggregate functions."""
        items = [_with_keys(item, self._keys) for item in nodes_of(fields, "select")]
        group = exp.Group(expressions=[self._function(""), *(without_alias(key) for key in self._keys)])
        return self._table._selected(items, replaced=self._property, group=group)

    def aggregate(self, func: Any) -> WindowAggregatedTable:
        """Aggregates each window and group with an aggregate function; ``select`` follows."""
        return WindowAggregatedTable(self, func, is_flat=False)

    def flat_aggregate(self, func: Any) -> WindowAggregatedTable:
        """Aggregates each window and group with a table aggregate function; ``select`` follows."""
        return WindowAggregatedTable(self, func, is_flat=True)

    def _function(self, suffix: str) -> nodes.Call:
        window = self._window
        arguments = [window.time._copy(), *(interval._copy() for interval in window.intervals)]
        if any(isinstance(argument, nodes.Call) and argument.function_name == "$ROWS" for argument in arguments):
            raise ValidationError(
                "Windows of a number of rows are not supported.", hint="Write a window of an interval of time."
            )
        return nodes.Call(this=f"{window.function}{suffix}", expressions=arguments)

    def _property(self, node: exp.Expression) -> exp.Expression:
        if not isinstance(node, nodes.WindowProperty):
            return node
        (name,) = only_names([node.this], "A property of a window")
        if name != self._window.name:
            raise ValidationError(f"'{name}' is not the alias of the window, which is '{self._window.name}'.")
        return self._function(f"_{node.args['name']}")


class OverWindowedTable:
    """A table with windows around each row."""

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table = table
        self._windows = windows

    def select(self, *fields: Any) -> Table:
        """The columns of each row; functions name their window by ``over``."""
        items = nodes_of(fields, "select")
        return self._table._selected(items, windows=[_over(window) for window in self._windows])


def _with_keys(item: exp.Expression, keys: Sequence[exp.Expression]) -> exp.Expression:
    """The item with what the aliases of keys stand for."""
    aliases = {key.alias: key.this for key in keys if isinstance(key, exp.Alias)}
    if not aliases:
        return item
    path = nodes.column_path(item)
    if path is not None and path[0] in aliases:
        item = exp.Alias(this=item, alias=exp.to_identifier(path[0], quoted=True))

    def replaced(node: exp.Expression) -> exp.Expression:
        path = nodes.column_path(node)
        return aliases[path[0]].copy() if path is not None and len(path) == 1 and path[0] in aliases else node

    return item.transform(replaced)


def _over(window: OverWindow) -> exp.Window:
    order = window.order._copy()
    keys = [order if isinstance(order, exp.Ordered) else exp.Ordered(this=order, desc=False)]
    bounds = [_bound(window.before._copy(), "PRECEDING")]
    is_rows = bounds[0][0] == "ROWS"
    if window.after is None:
        bounds.append(("ROWS" if is_rows else "RANGE", "CURRENT ROW", None))
    else:
        bounds.append(_bound(window.after._copy(), "FOLLOWING"))
    (kind, start, start_side), (other, end, end_side) = bounds
    if kind != other:
        raise ValidationError("Preceding and following must be of same interval type.")
    spec = exp.WindowSpec(kind=kind, start=start, start_side=start_side, end=end, end_side=end_side)
    return exp.Window(
        this=exp.to_identifier(window.name, quoted=True),
        partition_by=[part._copy() for part in window.partition],
        order=exp.Order(expressions=keys),
        spec=spec,
    )


def _bound(node: exp.Expression, side: str) -> tuple[str, Any, str | None]:
    """ROWS or RANGE, the bound, and its side."""
    if isinstance(node, exp.Var):
        word, unit = node.name.split()
        kind = "ROWS" if unit == "ROW" else "RANGE"
        return (kind, "UNBOUNDED", side) if word == "UNBOUNDED" else (kind, "CURRENT ROW", None)
    if isinstance(node, nodes.Call) and node.function_name == "$ROWS":
        return "ROWS", node.expressions[0], side
    return "RANGE", node, side
