"""Window table functions in FROM: TUMBLE, HOP, CUMULATE and SESSION."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Expression, InputRef, Literal
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import Filter, LogicalNode
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.table.plan.window_kinds import (
    CumulativeWindow,
    HoppingWindow,
    SessionWindow,
    TumblingWindow,
    Window,
)
from firesteel.table.plan.windows import WindowTableFunction
from firesteel.types.logical import (
    BooleanType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    RowField,
    RowType,
    TimestampType,
    YearMonthIntervalType,
)

__all__ = ["PROCTIME_IN_BATCH", "WINDOW_FUNCTIONS", "bind_window_function", "interval_millis", "with_times"]

WINDOW_FUNCTIONS: Mapping[str, Sequence[str]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
"""The parameters of the functions; an offset may be left out."""
PROCTIME_IN_BATCH = "In batch mode windows take a TIMESTAMP or TIMESTAMP_LTZ column that is not PROCTIME()."
"""What to do about windows of processing time in a batch."""
_FORMS = {
    "TUMBLE": "TUMBLE(TABLE table_name, DESCRIPTOR(timecol), datetime interval[, datetime interval])",
    "HOP": "HOP(TABLE table_name, DESCRIPTOR(timecol), datetime interval, datetime interval[, datetime interval])",
    "CUMULATE": "CUMULATE(TABLE table_name, DESCRIPTOR(timecol), datetime interval, datetime interval"
    "[, datetime interval])",
    "SESSION": "SESSION(TABLE table_name [PARTITION BY col1, ...], DESCRIPTOR(timecol), datetime interval)",
}

BindTable = Callable[[exp.Expression], LogicalNode]
BindExpression = Callable[[exp.Expression], Expression]


def bind_window_function(
    call: nodes.Call, bind_table: BindTable, bind: BindExpression, is_streaming: bool = True
) -> LogicalNode:
    """The relation of a call; ``bind`` binds expressions without columns."""
    name = call.function_name
    arguments = _arguments(name, call)
    table, time_column = arguments["DATA"], arguments["TIMECOL"]
    partition: Sequence[exp.Expression] = ()
    if isinstance(table, nodes.TableArgument):
        partition = table.args.get("partition_by") or ()
        if table.args.get("order") is not None:
            raise ValidationError(f"The table argument of {name} takes no ORDER BY.")
        table = table.this
    if partition and name != "SESSION":
        raise ValidationError(
            f"The table argument of {name} takes no PARTITION BY.", hint="Group by these columns instead."
        )
    node = bind_table(table)
    time = _time_column(name, time_column, node.row_type)
    _check_time(name, node.row_type.fields[time], is_streaming)
    if not is_streaming:
        node = with_times(node, time)
    keys = tuple(_column(node.row_type, part.name, f"{name}'s PARTITION BY") for part in partition)
    intervals = {
        parameter: interval_millis(bind(argument), name)
        for parameter, argument in arguments.items()
        if parameter not in ("DATA", "TIMECOL")
    }
    return WindowTableFunction(node, _window(name, intervals), time, keys, is_bounded=not is_streaming)


def with_times(node: LogicalNode, time: int) -> LogicalNode:
    """The rows that belong to windows: those with a time. In streams it is an error if one has none."""
    column = node.row_type.fields[time]
    if not column.type.nullable:
        return node
    has_time = Call(BooleanType(nullable=False), "IS_NOT_NULL", (InputRef(column.type, time, column.name),))
    return Filter(node, has_time)


def _arguments(name: str, call: nodes.Call) -> dict[str, exp.Expression]:
    parameters = WINDOW_FUNCTIONS[name]
    required = [parameter for parameter in parameters if parameter != "OFFSET"]
    found: dict[str, exp.Expression] = {}
    for parameter, argument in zip(parameters, call.expressions, strict=False):
        if not isinstance(argument, exp.Kwarg):
            found[parameter] = argument
            continue
        named = argument.this.name.upper()
        if named not in parameters or named in found:
            raise _invalid_call(name)
        found[named] = argument.expression
    if len(call.expressions) > len(parameters) or any(parameter not in found for parameter in required):
        raise _invalid_call(name)
    return found


def _invalid_call(name: str) -> ValidationError:
    return ValidationError(
        f"Cannot apply '{name}' to these arguments. Supported form(s): {_FORMS[name]}",
        hint=f"The names of the parameters are {', '.join(WINDOW_FUNCTIONS[name])}.",
    )


def _time_column(function: str, descriptor: exp.Expression, row_type: RowType) -> int:
    if not isinstance(descriptor, nodes.Call) or descriptor.function_name != "DESCRIPTOR":
        raise _invalid_call(function)
    columns = descriptor.expressions
    if not columns:
        raise _invalid_call(function)
    path = nodes.column_path(columns[0])
    if path is None or len(path) != 1:
        raise ValidationError("DESCRIPTOR takes the name of a column.")
    return _column(row_type, path[0], "DESCRIPTOR")


def _check_time(function: str, column: RowField, is_streaming: bool) -> None:
    """In streams windows are those of a time attribute, in batches those of any timestamp."""
    type_ = column.type
    if not isinstance(type_, (TimestampType, LocalZonedTimestampType)):
        raise ValidationError(
            f"The window function {_FORMS[function]} requires the timecol to be TIMESTAMP or TIMESTAMP_LTZ, "
            f"but is {type_.as_summary_string()}."
        )
    if is_streaming and not is_rowtime(type_) and not is_proctime(type_):
        raise ValidationError(
            f"The window function requires the timecol is a time attribute type, but is {type_.as_summary_string()}.",
            hint=f"Declare WATERMARK FOR {column.name} in the table, or use a column that is PROCTIME().",
        )
    if not is_streaming and is_proctime(type_):
        raise ValidationError("Processing time Window TableFunction is not supported yet.", hint=PROCTIME_IN_BATCH)


def _column(row_type: RowType, name: str, where: str) -> int:
    if name not in row_type.field_names:
        raise ValidationError(
            f"Unknown identifier '{name}' in {where}.", hint=f"The columns are {', '.join(row_type.field_names)}."
        )
    return row_type.field_names.index(name)


def interval_millis(bound: Expression, function: str) -> int:
    """The milliseconds of a constant interval."""
    if isinstance(bound.type, YearMonthIntervalType):
        raise ValidationError(
            "Window aggregate only support SECOND, MINUTE, HOUR, DAY as the time unit. MONTH and YEAR time unit are "
            f"not supported yet, in {function}."
        )
    if not isinstance(bound, Literal) or not isinstance(bound.type, DayTimeIntervalType):
        raise ValidationError(f"{function} takes constant intervals such as INTERVAL '10' MINUTE, not '{bound}'.")
    return int(bound.value)


def _window(name: str, intervals: Mapping[str, int]) -> Window:
    for parameter, millis in intervals.items():
        if parameter != "OFFSET" and millis <= 0:
            raise ValidationError(
                f"{name} table function based aggregate requires {parameter.lower()} to be positive, but got "
                f"{millis} ms."
            )
    if name == "SESSION":
        return SessionWindow(intervals["GAP"])
    size, offset = intervals["SIZE"], intervals.get("OFFSET", 0)
    if name == "TUMBLE":
        return TumblingWindow(size, offset)
    part = intervals["SLIDE" if name == "HOP" else "STEP"]
    what = "slide" if name == "HOP" else "step"
    whole = "size" if name == "HOP" else "maxSize"
    if size % part:
        raise ValidationError(
            f"{name} table function based aggregate requires {whole} must be an integral multiple of {what}, but got "
            f"{whole} {size} ms and {what} {part} ms"
        )
    return HoppingWindow(size, offset, part) if name == "HOP" else CumulativeWindow(size, offset, part)
