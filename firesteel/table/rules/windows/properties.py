"""Which columns of a relation are the bounds of windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from firesteel.table.bound.nodes import InputRef
from firesteel.table.plan.nodes import Filter, LogicalNode, Project
from firesteel.table.plan.streaming import Calc
from firesteel.table.plan.window_kinds import Window
from firesteel.table.plan.windows import WindowAggregate, WindowColumn, WindowJoin, WindowRank, WindowTableFunction
from firesteel.types.logical import LogicalType

__all__ = ["WindowProperties", "has_window_properties", "window_properties"]

N = TypeVar("N", bound=LogicalNode)


@dataclass(frozen=True)
class WindowProperties:
    """The windows of rows, and the columns that name them."""

    window: Window
    time_type: LogicalType
    columns: Mapping[int, WindowColumn]

    def of_kind(self, kind: WindowColumn) -> list[int]:
        """The columns of one kind."""
        return [index for index, column in self.columns.items() if column is kind]

    @property
    def has_bounds(self) -> bool:
        """Whether start and end are known."""
        return bool(self.of_kind(WindowColumn.START) and self.of_kind(WindowColumn.END))


_RULES: dict[type[LogicalNode], Callable[[Any], WindowProperties | None]] = {}


def has_window_properties(
    kind: type[N],
) -> Callable[[Callable[[N], WindowProperties | None]], Callable[[N], WindowProperties | None]]:
    """Registers what finds the windows of a kind of nodes."""

    def register(rule: Callable[[N], WindowProperties | None]) -> Callable[[N], WindowProperties | None]:
        _RULES[kind] = rule
        return rule

    return register


def window_properties(node: LogicalNode) -> WindowProperties | None:
    """The windows of the rows of a relation; None if they have none, or lost them."""
    rule = _RULES.get(type(node))
    found = None if rule is None else rule(node)
    return found if found is not None and found.columns else None


@has_window_properties(WindowTableFunction)
def _table_function(node: WindowTableFunction) -> WindowProperties:
    width = len(node.input.row_type.fields)
    return WindowProperties(
        node.window, node.time_type, {width + place: kind for place, kind in enumerate(WindowColumn)}
    )


@has_window_properties(WindowAggregate)
def _aggregate(node: WindowAggregate) -> WindowProperties:
    kinds = {place: kind for place, kind in enumerate(node.grouping) if isinstance(kind, WindowColumn)}
    return WindowProperties(node.window, node.time_type, kinds)


@has_window_properties(WindowJoin)
def _join(node: WindowJoin) -> WindowProperties:
    """The columns of the sides whose rows are all there."""
    assert node.window is not None
    assert node.time_type is not None
    columns: dict[int, WindowColumn] = {}
    bounds = (WindowColumn.START, WindowColumn.END)
    if not node.kind.keeps_right:
        columns |= dict(zip(node.left_bounds, bounds, strict=True))
    if node.has_right and not node.kind.keeps_left:
        columns |= {node.left_width + index: kind for index, kind in zip(node.right_bounds, bounds, strict=True)}
    return WindowProperties(node.window, node.time_type, columns)


@has_window_properties(WindowRank)
def _rank(node: WindowRank) -> WindowProperties | None:
    return window_properties(node.input)


@has_window_properties(Filter)
def _filter(node: Filter) -> WindowProperties | None:
    return window_properties(node.input)


@has_window_properties(Calc)
def _calc(node: Calc) -> WindowProperties | None:
    return _projected(node)


@has_window_properties(Project)
def _project(node: Project) -> WindowProperties | None:
    return _projected(node)


def _projected(node: Calc | Project) -> WindowProperties | None:
    below = window_properties(node.input)
    if below is None:
        return None
    columns = {
        place: below.columns[expression.index]
        for place, expression in enumerate(node.expressions)
        if isinstance(expression, InputRef) and expression.index in below.columns
    }
    return replace(below, columns=columns)
