"""OVER: calls of functions over windows, named windows, and the plan of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from firesteel.table.binder.calls import cast_to
from firesteel.table.binder.frames import RANKS, frame_of
from firesteel.table.binder.grouping import NEVER_NULL, aggregate_call, is_always_nullable
from firesteel.table.binder.query_expressions import QueryExpressionBinder
from firesteel.table.binder.user_functions import aggregate_name
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.functions.registry import find_function
from firesteel.table.functions.signatures import any_nullable
from firesteel.table.inference.families import is_binary, is_bitmap, is_character
from firesteel.table.plan.nodes import LogicalNode, Project, SortKey, unique_names
from firesteel.table.plan.over import BoundKind, Frame, Over, OverCall, OverGroup
from firesteel.table.plan.rewriting import transform
from firesteel.types.logical import LogicalType, LogicalTypeRoot

__all__ = ["OverBinder", "has_window", "sort_key"]

_Window = tuple[tuple[Expression, ...], tuple[tuple[Expression, bool, bool], ...], Frame]
_OWN_TYPES = RANKS | {"LAG", "LEAD"}
"""Functions whose type says already whether results may be null."""


def sort_key(item: exp.Ordered, index: int, type_: LogicalType) -> SortKey:
    """The key of an item; without NULLS FIRST or LAST, nulls are less than all values."""
    if is_bitmap(type_):
        raise ValidationError(
            f"Type({type_.as_summary_string()}) is not an orderable data type, it is not supported as a ORDER_BY field."
        )
    descending, nulls_first = bool(item.args.get("desc")), item.args.get("nulls_first")
    return SortKey(index, descending, descending if nulls_first is None else not nulls_first)


def has_window(node: exp.Expression) -> bool:
    """Whether an expression has a call with OVER that is not in a query."""
    if isinstance(node, exp.Query):
        return False
    return isinstance(node, exp.Window) or any(has_window(child) for child in node.iter_expressions())


@dataclass(frozen=True)
class _Result(Expression):
    """The result of a call, until it is known which column it is."""

    position: int

    def __str__(self) -> str:
        return f"$over{self.position}"


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: tuple[Expression, ...]
    distinct: bool
    window: _Window
    definition: Any = None


class OverBinder(QueryExpressionBinder):
    """Binds expressions of which some are over windows; ``inner`` binds the others, and what windows are made of."""

    def __init__(self, inner: QueryExpressionBinder, named: Sequence[exp.Window]) -> None:
        super().__init__(inner.scope, inner._bind_query, inner._sql, inner._session)
        self.inner = inner
        self._named: Mapping[str, exp.Window] = {window.this.name: window for window in named}
        self._calls: dict[_Call, _Result] = {}
        self._positions: dict[_Window, Position | None] = {}

    def _bind(self, node: exp.Expression) -> Expression:
        if isinstance(node, exp.Window):
            return self._over(node)
        return super()._bind(node) if has_window(node) else self.inner.bind(node)

    def _over(self, node: exp.Window) -> Expression:
        function = aggregate_call(node.this)
        if function is None or isinstance(node.this, exp.Filter):
            raise ValidationError("OVER must be applied to aggregate function")
        user = function.args.get("definition")
        definition = user or find_function(function.function_name)
        assert definition is not None
        name = definition.name if user is None else aggregate_name(user)
        parts = [part for part in function.expressions if not isinstance(part, (exp.Star, exp.Var))]
        if any(map(has_window, parts)):
            raise ValidationError("Aggregate expressions cannot be nested.")
        arguments = [self.inner.bind(part) for part in parts]
        inferred = definition.signature(arguments, ())
        if self._session.is_streaming and len(arguments) == 3:
            _check_default(arguments[0].type, arguments[2].type)
        window = self._window(self._merged(node), name)
        frame = window[2]
        never_empty = (
            frame.lower.kind in (BoundKind.UNBOUNDED_PRECEDING, BoundKind.CURRENT_ROW)
            and frame.lower.kind.value <= frame.upper.kind.value
        )
        type_ = inferred.result
        if name not in _OWN_TYPES and user is None:
            may_be_null = not never_empty or any_nullable(arguments) or is_always_nullable(name)
            type_ = type_.copy(name not in NEVER_NULL and may_be_null)
        cast = tuple(cast_to(argument, part) for argument, part in zip(arguments, inferred.arguments, strict=True))
        is_distinct = function.args.get("quantifier") == "DISTINCT"
        if is_distinct and not self._session.is_streaming:
            raise ValidationError("Distinct not supported in Windowing function!")
        call = _Call(name, cast, is_distinct, window, user)
        self._positions.setdefault(window, self._position(node))
        return self._calls.setdefault(call, _Result(type_, len(self._calls)))

    # -- windows -----------------------------------------------------------------------------------------------

    def _merged(self, node: exp.Window) -> exp.Window:
        """The window with what the window that it names has."""
        alias = node.args.get("alias")
        if not alias:
            return node
        name = alias if isinstance(alias, str) else alias.name
        if name not in self._named:
            raise ValidationError(f"Window '{name}' not found.")
        base = self._merged(self._named[name])
        for clause, words in (("partition_by", "PARTITION BY"), ("order", "ORDER BY"), ("spec", "frame")):
            if node.args.get(clause) and base.args.get(clause):
                raise ValidationError(f"Window '{name}' has a {words} clause already.")
        merged = exp.Window(this=node.this)
        for clause in ("partition_by", "order", "spec"):
            merged.set(clause, node.args.get(clause) or base.args.get(clause))
        return merged

    def _window(self, node: exp.Window, function: str) -> _Window:
        partition = tuple(self.inner.bind(part) for part in node.args.get("partition_by") or ())
        items = node.args["order"].expressions if node.args.get("order") is not None else ()
        order = []
        for item in items:
            bound = self.inner.bind(item.this)
            key = sort_key(item, 0, bound.type)
            order.append((bound, key.descending, key.nulls_last))
        frame = frame_of(node.args.get("spec"), function, [key for key, *_ in order], self.inner)
        return partition, tuple(order), frame

    # -- the plan ----------------------------------------------------------------------------------------------

    def finish(self, node: LogicalNode, expressions: Sequence[Expression]) -> tuple[LogicalNode, list[Expression]]:
        """The windows over a relation, and expressions with the columns of the results."""
        columns: list[Expression] = [
            InputRef(part.type, index, part.name) for index, part in enumerate(node.row_type.fields)
        ]
        width = len(columns)

        def column_of(expression: Expression) -> int:
            if isinstance(expression, InputRef):
                return expression.index
            if expression not in columns:
                columns.append(expression)
            return columns.index(expression)

        windows: dict[_Window, list[tuple[_Call, tuple[int, ...]]]] = {}
        keys = {}
        for call in self._calls:
            arguments = tuple(map(column_of, call.arguments))
            windows.setdefault(call.window, []).append((call, arguments))
            partition, order, _ = call.window
            keys[call.window] = (
                tuple(map(column_of, partition)),
                tuple(SortKey(column_of(key), descending, last) for key, descending, last in order),
            )
        if len(columns) > width:
            names = unique_names([*node.row_type.field_names, *(f"$w{index}" for index in range(len(columns) - width))])
            node = Project(node, tuple(columns), tuple(names))
        places: dict[_Call, int] = {}
        groups = []
        for number, (window, calls) in enumerate(windows.items()):
            made = []
            for position, (call, arguments) in enumerate(calls):
                places[call] = len(columns) + len(places)
                name = f"w{number}$o{position}"
                type_ = self._calls[call].type
                place = self._positions[window] if call.definition is not None else None
                made.append(OverCall(call.function, arguments, type_, name, call.distinct, (), call.definition, place))
            groups.append(OverGroup(*keys[window], window[2], tuple(made), self._positions[window]))
        over = Over(node, tuple(groups))
        by_position = [places[call] for call in self._calls]

        def resolved(part: Expression) -> Expression:
            if not isinstance(part, _Result):
                return part
            index = by_position[part.position]
            return InputRef(part.type, index, over.row_type.field_names[index])

        return over, [transform(expression, resolved) for expression in expressions]


def _check_default(value: LogicalType, default: LogicalType) -> None:
    """In streams, Flink does not cast the default value of LAG and LEAD."""
    if _kept_as(value) != _kept_as(default):
        raise ValidationError(
            f"Please explicitly cast default value {default.as_summary_string()} to {value.as_summary_string()}."
        )


def _kept_as(type_: LogicalType) -> object:
    """Types whose values are the same but for their length, precision or scale have the same."""
    if is_character(type_):
        return LogicalTypeRoot.VARCHAR
    return LogicalTypeRoot.VARBINARY if is_binary(type_) else type_.root
