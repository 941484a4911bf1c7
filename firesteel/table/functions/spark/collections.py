"""Arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.bound.nodes import Call
from firesteel.table.functions.spark.failures import failure_text
from firesteel.table.functions.spark.texts import SparkText, literal_value, quoted_text, spark_type
from firesteel.types import logical as t

__all__ = ["TEXTS"]


def _call(name: str) -> SparkText:
    return lambda call, arguments: f"{name}({', '.join(arguments)})"


def _array(call: Call, arguments: Sequence[str]) -> str | None:
    name = spark_type(call.type)
    return None if name is None else f"CAST(array({', '.join(arguments)}) AS {name})"


def _map(call: Call, arguments: Sequence[str]) -> str | None:
    """Spark refuses keys that are equal, of which Flink takes the last."""
    keys = [literal_value(key) for key in call.arguments[::2]]
    if None in keys or len(set(keys)) < len(keys):
        return None
    return f"map({', '.join(arguments)})"


def _row(call: Call, arguments: Sequence[str]) -> str | None:
    assert isinstance(call.type, t.RowType)
    parts = [f"{quoted_text(name)}, {value}" for name, value in zip(call.type.field_names, arguments, strict=True)]
    return f"named_struct({', '.join(parts)})" if parts else None


def _at(call: Call, arguments: Sequence[str]) -> str:
    container, key = arguments
    if isinstance(call.arguments[0].type, t.MapType):
        return f"try_element_at({container}, {key})"
    return f"CASE WHEN {key} >= 1 THEN try_element_at({container}, CAST({key} AS INT)) END"


def _cardinality(call: Call, arguments: Sequence[str]) -> str | None:
    if isinstance(call.arguments[0].type, t.MultisetType):
        return None
    return f"CASE WHEN {arguments[0]} IS NOT NULL THEN size({arguments[0]}) END"


def _element(call: Call, arguments: Sequence[str]) -> str | None:
    name, (array,) = spark_type(call.type), arguments
    if name is None:
        return None
    error = failure_text(call, quoted_text("Array has more than one element"), name)
    return f"CASE WHEN size({array}) > 1 THEN {error} ELSE try_element_at({array}, 1) END"


def _sort(call: Call, arguments: Sequence[str]) -> str | None:
    if len(arguments) > 2 or (len(arguments) == 2 and literal_value(call.arguments[1]) is None):
        return None
    return f"sort_array({', '.join(arguments)})"


TEXTS: dict[str, SparkText] = {
    "ARRAY": _array,
    "MAP": _map,
    "ROW": _row,
    "AT": _at,
    "CARDINALITY": _cardinality,
    "ELEMENT": _element,
    "ARRAY_APPEND": _call("array_append"),
    "ARRAY_PREPEND": _call("array_prepend"),
    "ARRAY_CONTAINS": "exists({0}, x -> x <=> {1})",
    "ARRAY_POSITION": "CAST(array_position({0}, {1}) AS INT)",
    "ARRAY_REMOVE": "filter({0}, x -> NOT (x <=> {1}))",
    "ARRAY_DISTINCT": _call("array_distinct"),
    "ARRAY_REVERSE": _call("reverse"),
    "ARRAY_SORT": _sort,
    "ARRAY_MAX": _call("array_max"),
    "ARRAY_MIN": _call("array_min"),
    "ARRAY_UNION": _call("array_union"),
    "ARRAY_CONCAT": _call("concat"),
    "ARRAY_EXCEPT": _call("array_except"),
    "ARRAY_INTERSECT": _call("array_intersect"),
    "ARRAY_JOIN": _call("array_join"),
    "MAP_KEYS": _call("map_keys"),
    "MAP_VALUES": _call("map_values"),
}
