"""Functions over windows in Spark SQL, with Flink's results."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.bound.nodes import Literal
from firesteel.table.evaluation.spark_text import spark_text, spark_type
from firesteel.table.inference.families import is_integer, is_timestamp
from firesteel.table.names import quoted
from firesteel.table.plan.nodes import Project, SortKey
from firesteel.table.plan.over import Bound, BoundKind, Over, OverCall, OverGroup
from firesteel.types.logical import DecimalType

__all__ = ["order_text", "over_text"]

_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "PERCENT_RANK", "CUME_DIST")
_SHIFTED = ("LAG", "LEAD")
_AGGREGATES = ("COUNT", "MIN", "MAX", "SUM", "AVG")


def order_text(order: Sequence[SortKey], names: Sequence[str]) -> str:
    """The items of an ORDER BY."""
    return ", ".join(
        f"{quoted(names[key.index])} {'DESC' if key.descending else 'ASC'} "
        f"NULLS {'LAST' if key.nulls_last else 'FIRST'}"
        for key in order
    )


def over_text(node: Over, group: OverGroup, call: OverCall) -> str | None:
    """A call over its window; None if Spark has no function, or no frame, with the same results."""
    names = node.input.row_type.field_names
    window = _window_text(node, group, call)
    if window is None or call.distinct:
        return None
    if call.function in (*_RANKS, *_SHIFTED):
        arguments = _arguments(node, call, names)
        if arguments is None:
            return None
        if call.function == "CUME_DIST":
            # Flink counts rows up to the row itself, not up to the last one that is equal in the order
            whole = ", ".join(quoted(names[index]) for index in group.partition)
            rows = f"COUNT(*) OVER ({f'PARTITION BY {whole}' if whole else ''})"
            return f"CAST(ROW_NUMBER() OVER ({window}) AS DOUBLE) / {rows}"
        return f"CAST({call.function}({', '.join(arguments)}) OVER ({window}) AS {spark_type(call.type)})"
    if call.function not in _AGGREGATES:
        return None
    return _aggregate(node, call, [quoted(names[index]) for index in call.arguments], f"OVER ({window})")


def _arguments(node: Over, call: OverCall, names: Sequence[str]) -> list[str] | None:
    """Offsets and numbers of tiles have to be constants in Spark."""
    first_constant = 0 if call.function == "NTILE" else 1
    texts: list[str] = []
    for position, index in enumerate(call.arguments):
        if position < first_constant:
            texts.append(quoted(names[index]))
            continue
        value = node.input.expressions[index] if isinstance(node.input, Project) else None
        text = spark_text(value) if isinstance(value, Literal) else None
        if text is None:
            return None
        texts.append(text)
    return texts


def _aggregate(node: Over, call: OverCall, arguments: list[str], over: str) -> str | None:
    name = spark_type(call.type)
    if call.function not in ("SUM", "AVG"):
        return f"{call.function}({', '.join(arguments) or '*'}) {over}"
    type_ = node.input.row_type.fields[call.arguments[0]].type
    (argument,) = arguments
    if call.function == "SUM":
        if isinstance(type_, DecimalType):
            return f"SUM(CAST({argument} AS {name})) {over}"
        return f"CAST(SUM({argument}) {over} AS {name})"
    if is_integer(type_):
        return f"CAST(SUM({argument}) {over} DIV COUNT({argument}) {over} AS {name})"
    return None if isinstance(type_, DecimalType) else f"CAST(AVG({argument}) {over} AS {name})"


def _window_text(node: Over, group: OverGroup, call: OverCall) -> str | None:
    names = node.input.row_type.field_names
    parts = [f"PARTITION BY {', '.join(quoted(names[index]) for index in group.partition)}"] if group.partition else []
    if group.order:
        parts.append(f"ORDER BY {order_text(group.order, names)}")
    elif call.function in (*_RANKS, *_SHIFTED):
        parts.append("ORDER BY NULL")
    if call.function in (*_RANKS, *_SHIFTED) or not group.order:
        whole = group.frame.upper.kind is BoundKind.UNBOUNDED_FOLLOWING or call.function in (*_RANKS, *_SHIFTED)
        return " ".join(parts) if whole else None
    bounds = [_bound_text(node, group, bound) for bound in (group.frame.lower, group.frame.upper)]
    if None in bounds:
        return None
    unit = "ROWS" if group.frame.rows else "RANGE"
    return " ".join([*parts, f"{unit} BETWEEN {bounds[0]} AND {bounds[1]}"])


def _bound_text(node: Over, group: OverGroup, bound: Bound) -> str | None:
    if bound.kind not in (BoundKind.PRECEDING, BoundKind.FOLLOWING):
        return bound.kind.name.replace("_", " ")
    if group.frame.rows:
        return str(bound)
    type_ = node.input.row_type.fields[group.order[0].index].type
    if is_timestamp(type_):
        return f"INTERVAL {bound.offset} MILLISECONDS {bound.kind.name}"
    return str(bound) if is_integer(type_) and isinstance(bound.offset, int) else None
