"""Window table functions in Spark SQL: arithmetic on milliseconds, and one row for each window."""

from __future__ import annotations

from firesteel.table.names import quoted
from firesteel.table.plan.window_kinds import (
    AlignedWindow,
    CumulativeWindow,
    HoppingWindow,
    TumblingWindow,
)
from firesteel.table.plan.windows import WindowTableFunction
from firesteel.types.logical import LocalZonedTimestampType

__all__ = ["window_text"]

_TIME, _START, _END = "`$ms`", "`$start`", "`$end`"


def window_text(node: WindowTableFunction, below: str) -> str | None:
    """The rows of a relation with their windows.

    None for windows that depend on the time zone of the session or the clock, and for sessions, which Flink's bounded
    queries do not have.
    """
    if isinstance(node.time_type, LocalZonedTimestampType) or not isinstance(node.window, AlignedWindow):
        return None
    names = [quoted(name) for name in node.input.row_type.field_names]
    columns = ", ".join(names)
    timed = f"(SELECT {columns}, unix_millis(CAST({names[node.time]} AS TIMESTAMP)) AS {_TIME} FROM {below})"
    windows = _aligned(node.window, timed, columns)
    start, end, time = map(quoted, node.names)
    bounds = f"{_timestamp(_START)} AS {start}, {_timestamp(_END)} AS {end}, {_timestamp(f'{_END} - 1')} AS {time}"
    return f"SELECT {columns}, {bounds} FROM {windows}"


def _timestamp(millis: str) -> str:
    return f"CAST(timestamp_millis({millis}) AS TIMESTAMP_NTZ)"


def _aligned(window: AlignedWindow, timed: str, columns: str) -> str:
    slice_end = f"({_TIME} - pmod({_TIME} - ({window.offset}), {window.slice}) + {window.slice})"
    match window:
        case HoppingWindow():
            base = window.offset + window.size
            # the first window that ends at the end of the slice, or after it
            first = f"({slice_end} + pmod({base} - {slice_end}, {window.slide}))"
            start = f"({slice_end} - {window.slice})"
            last = f"({start} - pmod({start} - ({window.offset}), {window.slide}) + {window.size})"
        case CumulativeWindow():
            first = slice_end
            last = f"({_TIME} - pmod({_TIME} - ({window.offset}), {window.size}) + {window.size})"
        case TumblingWindow():
            first = last = slice_end
        case _:
            raise AssertionError(window)
    ends = f"(SELECT {columns}, {_TIME}, {first} AS `$first`, {last} AS `$last` FROM {timed})"
    each = f"explode(sequence(`$first`, `$last`, CAST({window.step} AS BIGINT)))"
    # where slides are longer than windows, some times are in none
    rows = f"(SELECT {columns}, {each} AS {_END} FROM {ends} WHERE `$first` <= `$last`)"
    start = f"{_END} - {window.size}"
    if isinstance(window, CumulativeWindow):
        inside = f"({_END} - {window.step_size})"
        start = f"{inside} - pmod({inside} - ({window.offset}), {window.size})"
    return f"(SELECT {columns}, {_END}, {start} AS {_START} FROM {rows})"
