"""The functions of ``firesteel.table.expressions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.dsl.base import cast_node, column_node, node_of
from firesteel.table.dsl.expression import Expression, JsonOnNull, TimePointUnit
from firesteel.table.parser import nodes, parse_expression
from firesteel.table.user_functions.definition import definition_of_wrapper
from firesteel.table.user_functions.wrappers import UserDefinedFunctionWrapper

if TYPE_CHECKING:
    from firesteel.types.logical import LogicalType

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "convert_tz",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "date_format",
    "descriptor",
    "e",
    "from_unixtime",
    "if_then_else",
    "json",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "json_string",
    "lag",
    "lead",
    "lit",
    "local_time",
    "local_timestamp",
    "log",
    "map_",
    "map_from_arrays",
    "negative",
    "not_",
    "null_of",
    "object_of",
    "or_",
    "pi",
    "rand",
    "rand_integer",
    "range_",
    "row",
    "row_interval",
    "source_watermark",
    "temporal_overlaps",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_all_columns",
    "with_columns",
    "without_columns",
]

Any_ = Expression[Any]


def _call(name: str, *arguments: Any) -> Any_:
    return Expression(nodes.Call(this=name, expressions=[node_of(argument) for argument in arguments]))


def _joined(kind: type[exp.Expression], first: Any, *others: Any) -> Any_:
    node = node_of(first)
    for other in others:
        node = kind(this=node, expression=node_of(other))
    return Expression(node)


# -- columns, literals and calls ---------------------------------------------------------------------------------


def col(name: str) -> Any_:
    """The column of a name; ``*`` stands for all columns."""
    return Expression(column_node(name))


def lit(v: Any, data_type: LogicalType | None = None) -> Any_:
    """A constant, of a type if one is given."""
    if data_type is None:
        return Expression(node_of(v))
    if v is None:
        return null_of(data_type)
    return Expression(cast_node(node_of(v), data_type.copy(nullable=False)))


def null_of(data_type: LogicalType) -> Any_:
    """Null, of a type."""
    return Expression(cast_node(exp.Null(), data_type))


def call(f: Any, *args: Any) -> Any_:
    """A call of a function by its name, or of one that ``udf``, ``udtf``, ``udaf`` or ``udtaf`` has made."""
    if isinstance(f, str):
        return _call(f, *args)
    if not isinstance(f, UserDefinedFunctionWrapper):
        raise TypeError(f"call takes the name of a function or what udf and the like return, not {f!r}.")
    definition = definition_of_wrapper(f)
    found = [node_of(argument) for argument in args]
    return Expression(nodes.Call(this=definition.name, expressions=found, definition=definition))


def call_sql(sql_expression: str) -> Any_:
    """An expression in SQL over the columns of the table."""
    return Expression(parse_expression(sql_expression))


# -- choices of columns ------------------------------------------------------------------------------------------


def range_(start: str | int, end: str | int) -> Any_:
    """The columns between two names, or between two numbers that begin at 1, in ``with_columns``."""
    return _call("$RANGE", *(col(each) if isinstance(each, str) else each for each in (start, end)))


def with_all_columns() -> Any_:
    """All columns."""
    return col("*")


def with_columns(head: Any, *tails: Any) -> Any_:
    """Some columns: names, numbers that begin at 1, and ranges of them."""
    return _call("$WITH_COLUMNS", head, *tails)


def without_columns(head: Any, *tails: Any) -> Any_:
    """All columns but some."""
    return _call("$WITHOUT_COLUMNS", head, *tails)


# -- conditions --------------------------------------------------------------------------------------------------


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Any_:
    """Whether all conditions are true."""
    return _joined(exp.And, predicate0, predicate1, *predicates)


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Any_:
    """Whether one of the conditions is true."""
    return _joined(exp.Or, predicate0, predicate1, *predicates)


def not_(expression: Any) -> Any_:
    """Whether a condition is false; null if it is null."""
    return Expression(exp.Not(this=node_of(expression)))


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Any_:
    """One of two values, depending on a condition."""
    return Expression(node_of(condition)).then(if_true, if_false)


def coalesce(*args: Any) -> Any_:
    """The first value that is not null."""
    return _call("COALESCE", *args)


# -- frames of OVER windows --------------------------------------------------------------------------------------

UNBOUNDED_ROW: Any_ = Expression(exp.Var(this="UNBOUNDED ROW"))
"""All rows before, or after, the current one."""
UNBOUNDED_RANGE: Any_ = Expression(exp.Var(this="UNBOUNDED RANGE"))
"""All rows of an earlier, or a later, time."""
CURRENT_ROW: Any_ = Expression(exp.Var(this="CURRENT ROW"))
"""The current row."""
CURRENT_RANGE: Any_ = Expression(exp.Var(this="CURRENT RANGE"))
"""All rows of the time of the current one."""


def row_interval(rows: int) -> Any_:
    """So many rows, in the frame of a window."""
    return _call("$ROWS", rows)


def lag(expr: Any, offset: Any = 1, default: Any = None) -> Any_:
    """The value of an earlier row."""
    return _call("LAG", expr, offset, *([] if default is None else [default]))


def lead(expr: Any, offset: Any = 1, default: Any = None) -> Any_:
    """The value of a later row."""
    return _call("LEAD", expr, offset, *([] if default is None else [default]))


# -- dates and times ---------------------------------------------------------------------------------------------


def current_database() -> Any_:
    """The name of the current database."""
    return _call("CURRENT_DATABASE")


def current_date() -> Any_:
    """Today's date in the time zone of the session."""
    return _call("CURRENT_DATE")


def current_time() -> Any_:
    """The time of day in the time zone of the session."""
    return _call("CURRENT_TIME")


def current_timestamp() -> Any_:
    """The present moment."""
    return _call("CURRENT_TIMESTAMP")


def current_watermark(rowtimeAttribute: Any) -> Any_:  # noqa: N803 - Flink's name
    """The watermark of a time attribute."""
    return _call("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Any_:
    """The time of day in the time zone of the session."""
    return _call("LOCALTIME")


def local_timestamp() -> Any_:
    """Date and time in the time zone of the session."""
    return _call("LOCALTIMESTAMP")


def to_date(date_str: Any, format: Any = None) -> Any_:
    """The date of a text."""
    return Expression(node_of(date_str))._call("TO_DATE", format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Any_:
    """The timestamp of a text."""
    return Expression(node_of(timestamp_str))._call("TO_TIMESTAMP", format)


def to_timestamp_ltz(*args: Any) -> Any_:
    """A moment: of a number of seconds or milliseconds, or of a text."""
    return _call("TO_TIMESTAMP_LTZ", *args)


def temporal_overlaps(left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any) -> Any_:
    """Whether two periods have a moment in common."""
    periods = [
        exp.Tuple(expressions=[node_of(point), node_of(temporal)])
        for point, temporal in ((left_time_point, left_temporal), (right_time_point, right_temporal))
    ]
    return _call("OVERLAPS", *periods)


def date_format(timestamp: Any, format: Any) -> Any_:
    """A timestamp as text in a format."""
    return _call("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Any_:
    """The number of units between two points in time."""
    return _call("TIMESTAMPDIFF", exp.Var(this=time_point_unit.value), time_point1, time_point2)


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Any_:
    """The text of a timestamp in another time zone."""
    return _call("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Any, format: Any = None) -> Any_:
    """The text of a number of seconds since 1970."""
    return Expression(node_of(unixtime))._call("FROM_UNIXTIME", format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Any_:
    """The number of seconds since 1970, now or of a text."""
    if date_str is None:
        return _call("UNIX_TIMESTAMP")
    return Expression(node_of(date_str))._call("UNIX_TIMESTAMP", format)


def source_watermark() -> Any_:
    """The watermark of the source, in the schema of a stream."""
    return _call("SOURCE_WATERMARK")


# -- collections -------------------------------------------------------------------------------------------------


def array(head: Any, *tail: Any) -> Any_:
    """An array."""
    return Expression(exp.Array(expressions=[node_of(element) for element in (head, *tail)]))


def row(head: Any, *tail: Any) -> Any_:
    """A row."""
    return Expression(exp.Tuple(expressions=[node_of(element) for element in (head, *tail)]))


def map_(key: Any, value: Any, *tail: Any) -> Any_:
    """A map of keys and values in turn."""
    return Expression(nodes.MapConstructor(expressions=[node_of(element) for element in (key, value, *tail)]))


def map_from_arrays(key: Any, value: Any) -> Any_:
    """A map of an array of keys and one of values."""
    return _call("MAP_FROM_ARRAYS", key, value)


def descriptor(*column_names: str) -> Any_:
    """Names of columns as an argument of a table function."""
    return _call("DESCRIPTOR", *(column_node(name) for name in column_names))


def object_of(class_name: str, *args: Any) -> Any_:
    """An object of a structured type."""
    return _call("OBJECT_OF", class_name, *args)


# -- numbers and strings -----------------------------------------------------------------------------------------


def pi() -> Any_:
    """The number pi."""
    return _call("PI")


def e() -> Any_:
    """The number e."""
    return _call("E")


def rand(seed: Any = None) -> Any_:
    """A random number from 0 to 1."""
    return _call("RAND", *([] if seed is None else [seed]))


def rand_integer(bound: Any, seed: Any = None) -> Any_:
    """A random integer from 0 to a bound."""
    return _call("RAND_INTEGER", *([] if seed is None else [seed]), bound)


def atan2(y: Any, x: Any) -> Any_:
    """The angle of a point."""
    return _call("ATAN2", y, x)


def negative(v: Any) -> Any_:
    """The value with the opposite sign."""
    return -Expression(node_of(v))


def log(v: Any, base: Any = None) -> Any_:
    """The natural logarithm, or that to a base."""
    return Expression(node_of(v)).log(base)


def concat(first: Any, *others: Any) -> Any_:
    """Strings as one."""
    return _call("CONCAT", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Any_:
    """Strings as one, with a separator between them."""
    return _call("CONCAT_WS", separator, first, *others)


def uuid() -> Any_:
    """A random UUID."""
    return _call("UUID")


# -- JSON --------------------------------------------------------------------------------------------------------


def json(value: Any) -> Any_:
    """A text as a part of JSON, in ``json_object`` and ``json_array``."""
    return _call("JSON", value)


def json_string(value: Any) -> Any_:
    """A value as JSON text."""
    return _call("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Any_:
    """The JSON text of an object of keys and values in turn."""
    pairs = [
        exp.JSONKeyValue(this=node_of(key), expression=node_of(value))
        for key, value in zip(args[::2], args[1::2], strict=True)
    ]
    return Expression(nodes.Call(this="JSON_OBJECT", expressions=pairs, on_null=on_null.value))


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Any_:
    """The JSON text of an object of all keys and values of a group."""
    pair = exp.JSONKeyValue(this=node_of(key_expr), expression=node_of(value_expr))
    return Expression(nodes.Call(this="JSON_OBJECTAGG", expressions=[pair], on_null=on_null.value))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Any_:
    """The JSON text of an array."""
    values = [node_of(value) for value in args]
    return Expression(nodes.Call(this="JSON_ARRAY", expressions=values, on_null=on_null.value))


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Any_:
    """The JSON text of an array of all values of a group."""
    return Expression(nodes.Call(this="JSON_ARRAYAGG", expressions=[node_of(item_expr)], on_null=on_null.value))
