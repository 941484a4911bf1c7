"""Dates and times from and to text and numbers, and the current time."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall
from firesteel.table.functions.signatures import CHARACTER, INTEGER, Parameter, check_count, mismatch, signature
from firesteel.table.inference.families import is_character, is_numeric, is_timestamp
from firesteel.table.values.date_format import FormatError, Moment, formatter, granularity, parser
from firesteel.table.values.numbers import wrap
from firesteel.table.values.temporal_text import parse_date, parse_timestamp, timestamp_text
from firesteel.table.values.zones import find_zone, to_instant, to_last_instant, to_local
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]

_DAY = 86_400_000_000_000
_SECOND = 1_000_000_000
_UNIT_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_STRING = t.VarCharType()
_BIGINT = t.BigIntType()
_DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
_FIRST_INSTANT = -62_135_596_800 * _SECOND
_END_OF_TIME = 253_402_300_800 * _SECOND
"""The years 1 to 9999."""
_MIN_LONG = -(2**63)
_FORMATTED = Parameter(
    "<TIMESTAMP> or <CHARACTER>", lambda type_: is_timestamp(type_) or is_character(type_), t.TimestampType(3)
)


def _define(name: str, sign: Any, row: Any, **options: Any) -> FunctionDefinition:
    return FunctionDefinition(name, sign, row=row, family="temporal", **options)


def _format(pattern: str, moment: Moment) -> str:
    try:
        return formatter(pattern)(moment)
    except FormatError as error:
        raise EvaluationError(f"Cannot format with '{pattern}': {error}") from error


def _date_format(call: Call, session: Session) -> Callable[[Any, str], str | None]:
    type_ = call.arguments[0].type
    if is_character(type_):

        def of_text(text: str, pattern: str) -> str | None:
            try:
                nanos = parse_timestamp(text, 9)
            except ValueError:
                return None
            return _format(pattern, Moment(nanos)) if " " in text.strip() else None

        return of_text
    if isinstance(type_, t.LocalZonedTimestampType):
        zone = find_zone(session.local_time_zone)

        def of_instant(nanos: int, pattern: str) -> str:
            local = to_local(nanos, zone)
            return _format(pattern, Moment(local))

        return of_instant
    return lambda nanos, pattern: _format(pattern, Moment(nanos))


def _date_format_of_columns(call: Call, session: Session) -> Callable[..., Any] | None:
    """Formats each of the times that differ in the text once: days, hours, minutes or seconds."""
    operand, pattern = call.arguments
    if not isinstance(pattern, Literal) or pattern.value is None or is_character(operand.type):
        return None
    try:
        seconds = granularity(pattern.value)
    except FormatError:
        return None
    if not seconds:
        return None
    if isinstance(operand.type, t.LocalZonedTimestampType):
        # offsets of zones may have seconds
        seconds = 1
    body, text = _date_format(call, session), pattern.value

    def kernel(times: Any, _pattern: Any) -> Any:
        per_second = _SECOND // _UNIT_NANOS[times.type.unit]
        numbers = times.cast(pa.int64())
        known = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
        encoded = pa.array(known // (seconds * per_second)).dictionary_encode()
        texts = [body(number * seconds * _SECOND, text) for number in encoded.dictionary.to_pylist()]
        found = pa.array(texts, pa.string()).take(encoded.indices)
        return pc.if_else(numbers.is_valid(), found, pa.scalar(None, pa.string())) if times.null_count else found

    return kernel


def _convert_tz(text: str, source: str, target: str) -> str | None:
    try:
        local = parser(_DEFAULT_FORMAT, lenient=True)(text).nanos
    except FormatError:
        return None
    return timestamp_text(to_local(to_last_instant(local, _zone_or_utc(source)), _zone_or_utc(target)), 0)


def _zone_or_utc(name: str) -> dt.tzinfo:
    """Java takes UTC for a zone that it does not know."""
    try:
        return find_zone(name)
    except ValueError:
        return dt.timezone.utc


def _from_unixtime(call: Call, session: Session) -> Callable[..., str | None]:
    zone = find_zone(session.local_time_zone)

    def convert(seconds: int, pattern: str = _DEFAULT_FORMAT) -> str | None:
        try:
            nanos = wrap(seconds * 1000, 64) * 10**6  # milliseconds are numbers of 64 bits
            return _format(pattern, Moment(to_local(nanos, zone)))
        except (ValueError, OverflowError):
            return None

    return convert


def _now(session: Session) -> int:
    if session.now is None:
        raise EvaluationError("The session has no clock.")
    return session.now()


def _unix_timestamp(call: Call, session: Session) -> Callable[..., int]:
    zone = find_zone(session.local_time_zone)

    def convert(text: str | None = None, pattern: str = _DEFAULT_FORMAT) -> int:
        if text is None:
            return _now(session) // _SECOND
        try:
            moment = parser(pattern, lenient=True)(text)
        except FormatError:
            return _MIN_LONG
        if moment.offset is not None:
            return moment.nanos // _SECOND - moment.offset
        return to_last_instant(moment.nanos, zone) // _SECOND

    return convert


def _to_date(text: str, pattern: str = "yyyy-MM-dd") -> int | None:
    try:
        return parser(pattern)(text).nanos // _DAY if pattern != "yyyy-MM-dd" else parse_date(text)
    except (FormatError, ValueError):
        return None


def _to_timestamp(text: str, pattern: str | None = None) -> int | None:
    try:
        nanos = parse_timestamp(text, 3) if pattern is None else parser(pattern)(text).nanos
    except (FormatError, ValueError):
        return None
    return nanos // 10**6 * 10**6


def _infer_ltz(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    check_count("TO_TIMESTAMP_LTZ", arguments, 1, 3)
    types = [argument.type for argument in arguments]
    result = t.LocalZonedTimestampType(3)
    if is_numeric(types[0]):
        if len(types) > 2 or (len(types) == 2 and not INTEGER.accepts(types[1])):
            raise mismatch("TO_TIMESTAMP_LTZ", arguments, "'TO_TIMESTAMP_LTZ(<NUMERIC>, <INTEGER>)'")
    elif not all(map(is_character, types)):
        raise mismatch("TO_TIMESTAMP_LTZ", arguments, "'TO_TIMESTAMP_LTZ(<CHARACTER>, <CHARACTER>, <CHARACTER>)'")
    return Inferred(tuple(types), result)


def _to_timestamp_ltz(call: Call, session: Session) -> Callable[..., int | None]:
    if is_character(call.arguments[0].type):

        def of_text(text: str, pattern: str | None = None, zone: str = "UTC") -> int | None:
            nanos = _to_timestamp(text, pattern)
            try:
                return None if nanos is None else to_instant(nanos, find_zone(zone))
            except ValueError:
                return None

        return of_text

    def of_number(value: Any, precision: int = 3) -> int | None:
        if not math.isfinite(value):
            return None
        nanos: int = math.floor(value) * 10 ** (9 - precision)
        return nanos if _FIRST_INSTANT <= nanos < _END_OF_TIME else None

    return of_number


def _clock(name: str, type_: Any, convert: Callable[[int], int], zoned: bool = False) -> FunctionDefinition:
    def make(call: Call, session: Session) -> Callable[[], int]:
        zone = find_zone(session.local_time_zone)

        def current() -> int:
            now = _now(session)
            return convert(to_local(now, zone) if zoned else now)

        return current

    sign = signature(name, returns=type_, nullable=False)
    return _define(name, sign, PerCall(make), is_deterministic=False, returns_null=False)


def _infer_watermark(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    check_count("CURRENT_WATERMARK", arguments, 1, 1)
    type_ = arguments[0].type
    if not isinstance(type_, (t.TimestampType, t.LocalZonedTimestampType)) or type_.kind is not t.TimestampKind.ROWTIME:
        raise ValidationError(
            f"The argument of CURRENT_WATERMARK() must be a rowtime attribute, but was '{type_.as_summary_string()}'."
        )
    return Inferred((type_,), type(type_)(type_.precision))


def _watermark(call: Call, session: Session) -> Callable[[Any], int | None]:
    read = session.watermark
    if read is None:
        raise ValidationError(
            "CURRENT_WATERMARK() is not supported in this place.", hint="Write it in SELECT or WHERE."
        )

    def watermark(_: Any) -> int | None:
        millis = read()
        return None if millis is None else millis * 10**6

    return watermark


def _millis(nanos: int) -> int:
    return nanos // 10**6 * 10**6


def _seconds_of_day(nanos: int) -> int:
    return nanos % _DAY // _SECOND * 1000


_INSTANT = t.LocalZonedTimestampType(3)

FUNCTIONS = (
    _define(
        "DATE_FORMAT",
        signature("DATE_FORMAT", _FORMATTED, CHARACTER, returns=_STRING, nullable=True),
        PerCall(_date_format),
        vector=PerCall(_date_format_of_columns),
        can_fail=True,
    ),
    _define(
        "CONVERT_TZ",
        signature("CONVERT_TZ", CHARACTER, CHARACTER, CHARACTER, returns=_STRING, nullable=True),
        _convert_tz,
    ),
    _define(
        "FROM_UNIXTIME",
        signature("FROM_UNIXTIME", INTEGER, CHARACTER, returns=_STRING, optional=1, nullable=True),
        PerCall(_from_unixtime),
    ),
    _define(
        "UNIX_TIMESTAMP",
        signature("UNIX_TIMESTAMP", CHARACTER, CHARACTER, returns=_BIGINT, optional=2),
        PerCall(_unix_timestamp),
        is_deterministic=False,
    ),
    _define(
        "TO_DATE", signature("TO_DATE", CHARACTER, CHARACTER, returns=t.DateType(), optional=1, nullable=True), _to_date
    ),
    _define(
        "TO_TIMESTAMP",
        signature("TO_TIMESTAMP", CHARACTER, CHARACTER, returns=t.TimestampType(3), optional=1, nullable=True),
        _to_timestamp,
    ),
    _define("TO_TIMESTAMP_LTZ", _infer_ltz, PerCall(_to_timestamp_ltz)),
    _clock("LOCALTIME", t.TimeType(0), _seconds_of_day, zoned=True),
    _clock("CURRENT_TIME", t.TimeType(0), _seconds_of_day, zoned=True),
    _clock("LOCALTIMESTAMP", t.TimestampType(3), _millis, zoned=True),
    _clock("CURRENT_DATE", t.DateType(), lambda nanos: nanos // _DAY, zoned=True),
    _clock("CURRENT_TIMESTAMP", _INSTANT, _millis),
    _clock("NOW", _INSTANT, _millis),
    _clock("CURRENT_ROW_TIMESTAMP", _INSTANT, _millis),
    _define(
        "CURRENT_WATERMARK",
        _infer_watermark,
        PerCall(_watermark),
        strict=False,
        is_deterministic=False,
    ),
    _clock("PROCTIME", t.LocalZonedTimestampType(3, t.TimestampKind.PROCTIME, nullable=False), _millis),
)
