"""A join of streams is one by key: columns that have to be equal, and a condition for the rest.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.bound.nodes import InputRef
>>> from firesteel.table.plan.nodes import JoinKind, TableScan
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()])
>>> one, other = (TableScan(ObjectIdentifier("c", "d", name), row_type) for name in "tu")
>>> a, b, a0, b0 = (InputRef(DataTypes.INT(), index, name) for index, name in enumerate(("a", "b", "a0", "b0")))
>>> condition = call("AND", [call("EQUALS", [a, a0]), call("LESS_THAN", [b, b0])])
>>> print(streaming_joins(Join(one, other, JoinKind.INNER, condition)).explain())
StreamingJoin(joinType=[INNER], where=[a = a AND LESS_THAN(b, b0)])
  TableScan(table=[c.d.t])
  TableScan(table=[c.d.u])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from firesteel.table.bound.nodes import Call, Expression, InputRef
from firesteel.table.plan.joins import HintedJoin, StreamingJoin
from firesteel.table.plan.nodes import Join, JoinKind, LogicalNode, Project, unique_names
from firesteel.table.plan.rewriting import moved_inputs
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.table.plan.time_joins import IntervalJoin, TemporalTableJoin
from firesteel.table.rules.conjunctions import columns_of, conjunction, conjuncts, has_subquery, is_deterministic
from firesteel.table.rules.joins.interval_bounds import IntervalBounds, interval_bounds
from firesteel.table.rules.references import references

__all__ = ["EquiCondition", "equi_condition", "streaming_joins"]

_EQUALITIES = {"EQUALS": False, "IS_NOT_DISTINCT_FROM": True}


def streaming_joins(node: LogicalNode) -> LogicalNode:
    """A node whose inputs have been rewritten."""
    if not isinstance(node, Join):
        return node
    found = equi_condition(node)
    interval = _interval_join(node, found)
    if interval is not None:
        return interval
    joined: LogicalNode = StreamingJoin(
        found.left,
        found.right,
        node.kind,
        found.left_keys,
        found.right_keys,
        found.null_safe,
        conjunction(found.rest),
        *((node.left_ttl_ms, node.right_ttl_ms) if isinstance(node, HintedJoin) else ()),
    )
    return found.restored(joined, node)


def _interval_join(node: Join, found: EquiCondition) -> LogicalNode | None:
    """The join as one by time, if its conditions bound the time of both sides."""
    width = len(found.left.row_type.fields)
    bounds = interval_bounds(found.rest, width)
    pairs = list(zip(found.left_keys, found.right_keys, found.null_safe, strict=True))
    if bounds is None:
        # times that have to be equal are keys
        for pair in pairs:
            types = [
                side.row_type.fields[column].type for side, column in zip((found.left, found.right), pair, strict=False)
            ]
            if all(map(is_rowtime, types)) or all(map(is_proctime, types)):
                pairs.remove(pair)
                bounds = IntervalBounds(pair[0], width + pair[1], 0, 0, is_rowtime(types[0]), found.rest)
                break
    if bounds is None or node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return None
    joined = IntervalJoin(
        found.left,
        found.right,
        node.kind,
        tuple(pair[0] for pair in pairs),
        tuple(pair[1] for pair in pairs),
        tuple(pair[2] for pair in pairs),
        conjunction(bounds.rest),
        bounds.left,
        bounds.right - width,
        bounds.lower,
        bounds.upper,
        bounds.is_event_time,
    )
    return found.restored(joined, node)


class EquiCondition(NamedTuple):
    """The inputs of a join with columns for all keys, and the condition taken apart."""

    left: LogicalNode
    right: LogicalNode
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    rest: list[Expression]
    """What has to be true besides, over the columns of both inputs."""

    def restored(self, joined: LogicalNode, node: Join | TemporalTableJoin) -> LogicalNode:
        """The join without the columns that were added to its inputs."""
        width, offset = len(node.left.row_type.fields), len(self.left.row_type.fields)
        kept = list(range(width))
        if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            kept += range(offset, offset + len(node.right.row_type.fields))
        if len(kept) == len(joined.row_type.fields):
            return joined
        chosen = [references(joined)[index] for index in kept]
        return Project(joined, tuple(chosen), node.row_type.field_names)


def equi_condition(node: Join | TemporalTableJoin) -> EquiCondition:
    """The condition of a join; keys that are expressions become columns of the inputs."""
    width = len(node.left.row_type.fields)
    total = width + len(node.right.row_type.fields)
    left, right = _Side(node.left, 0), _Side(node.right, width)
    pairs: list[tuple[int, int, bool]] = []
    rest: list[Expression] = []
    for part in conjuncts(node.condition):
        sides = _sides(part, width)
        if sides is None:
            rest.append(part)
            continue
        assert isinstance(part, Call)
        pair = (left.column(sides[0]), right.column(sides[1]), _EQUALITIES[part.function])
        if pair not in pairs:
            pairs.append(pair)
    new_left, new_right = left.node(), right.node()
    shift = len(new_left.row_type.fields) - width
    places = {index: index + (shift if index >= width else 0) for index in range(total)}
    return EquiCondition(
        new_left,
        new_right,
        tuple(pair[0] for pair in pairs),
        tuple(pair[1] for pair in pairs),
        tuple(pair[2] for pair in pairs),
        [moved_inputs(part, places) for part in rest],
    )


def _sides(part: Expression, width: int) -> Sequence[Expression] | None:
    """What has to be equal of the left and of the right side."""
    if not isinstance(part, Call) or part.function not in _EQUALITIES:
        return None
    if has_subquery(part) or not is_deterministic(part):
        return None
    one, other = part.arguments
    used = columns_of(one), columns_of(other)
    if not used[0] or not used[1]:
        return None
    if max(used[0]) < width <= min(used[1]):
        return one, other
    if max(used[1]) < width <= min(used[0]):
        return other, one
    return None


class _Side:
    """An input of a join, with columns for its keys."""

    def __init__(self, node: LogicalNode, offset: int) -> None:
        self._node = node
        self._offset = offset
        self._added: list[Expression] = []

    def column(self, expression: Expression) -> int:
        """The column of an expression over the columns of both sides."""
        width = len(self._node.row_type.fields)
        own = moved_inputs(expression, {self._offset + index: index for index in range(width)})
        if isinstance(own, InputRef):
            return own.index
        if own not in self._added:
            self._added.append(own)
        return width + self._added.index(own)

    def node(self) -> LogicalNode:
        if not self._added:
            return self._node
        names = [*self._node.row_type.field_names, *(f"$key{index}" for index in range(len(self._added)))]
        return Project(self._node, (*references(self._node), *self._added), tuple(unique_names(names)))
