"""Frames of windows: ROWS and RANGE with their bounds, and what Flink allows of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from firesteel.table.binder.query_expressions import QueryExpressionBinder
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, Literal
from firesteel.table.inference.families import is_datetime, is_integer, is_interval, is_numeric
from firesteel.table.plan.over import Bound, BoundKind, Frame

__all__ = ["RANKS", "frame_of"]

RANKS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"})
"""Functions of the place of a row in its partition."""
_NO_FRAME = RANKS | {"LAG", "LEAD"}
_NEEDS_ORDER = RANKS - {"ROW_NUMBER"}


def frame_of(
    spec: exp.WindowSpec | None, function: str, order: Sequence[Expression], binder: QueryExpressionBinder
) -> Frame:
    """The frame that a window has for a function."""
    if function in _NEEDS_ORDER and not order:
        raise ValidationError("RANK or DENSE_RANK functions require ORDER BY clause in window specification")
    if spec is None:
        # without an order, all rows are equal in it
        rows = function == "ROW_NUMBER"
        upper = BoundKind.CURRENT_ROW if order or rows else BoundKind.UNBOUNDED_FOLLOWING
        return Frame(rows, Bound(BoundKind.UNBOUNDED_PRECEDING), Bound(upper))
    if function in _NO_FRAME:
        raise ValidationError("ROW/RANGE not allowed with RANK, DENSE_RANK or ROW_NUMBER functions")
    rows = spec.args["kind"] == "ROWS"
    lower, upper_bound = (_bound(spec, side, rows, order, binder) for side in ("start", "end"))
    if lower.kind is BoundKind.UNBOUNDED_FOLLOWING:
        raise ValidationError("UNBOUNDED FOLLOWING cannot be specified for the lower frame boundary")
    if upper_bound.kind is BoundKind.UNBOUNDED_PRECEDING:
        raise ValidationError("UNBOUNDED PRECEDING cannot be specified for the upper frame boundary")
    if lower.kind is BoundKind.CURRENT_ROW and upper_bound.kind is BoundKind.PRECEDING:
        raise ValidationError("Upper frame boundary cannot be PRECEDING when lower boundary is CURRENT ROW")
    if lower.kind is BoundKind.FOLLOWING and upper_bound.kind.value < BoundKind.FOLLOWING.value:
        raise ValidationError("Upper frame boundary cannot be CURRENT ROW or PRECEDING when lower one is FOLLOWING")
    return Frame(rows, lower, upper_bound)


def _bound(
    spec: exp.WindowSpec, side: str, rows: bool, order: Sequence[Expression], binder: QueryExpressionBinder
) -> Bound:
    value, direction = spec.args[side], spec.args.get(f"{side}_side")
    if value == "CURRENT ROW":
        return Bound(BoundKind.CURRENT_ROW)
    kind = BoundKind[str(direction)]
    if value == "UNBOUNDED":
        return Bound(BoundKind[f"UNBOUNDED_{kind.name}"])
    bound = binder.bind(value)
    if not isinstance(bound, Literal) or bound.value is None:
        raise ValidationError("The offset of a window frame must be a constant.")
    if rows:
        if not is_integer(bound.type):
            raise ValidationError("ROWS value must be an integer")
    else:
        _check_range(bound, order)
    if bound.value < 0:
        raise ValidationError("The offset of a window frame must not be negative.")
    return Bound(kind, bound.value)


def _check_range(bound: Expression, order: Sequence[Expression]) -> None:
    if len(order) != 1:
        raise ValidationError("RANGE clause cannot be used with compound ORDER BY clause")
    type_ = order[0].type
    if not ((is_interval(bound.type) and is_datetime(type_)) or (is_numeric(bound.type) and is_numeric(type_))):
        raise ValidationError("Data type of ORDER BY prohibits use of RANGE clause")
