"""Conversion of records to their declared type, as the coders of PyFlink convert what leaves Python.

A FLOAT is rounded to 32 bits, a float for an INT is cut, a Row gets the names of its type, a timestamp of SQL has
no time zone. A conversion is code that is written for its type. Most records are of their type already: an expression
that a generated loop evaluates tells it, and only other records are converted. A value that cannot be converted raises
an error.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.types import Row, named_row, values_by_name
from firesteel.types.composite_type_information import (
    BasicArrayTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from firesteel.types.type_information import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
)

__all__ = ["NEVER", "Bind", "Conversion", "conversion_of"]

Bind = Callable[[str, Any], str]
"""Makes an object known to an expression: returns the name for it, like the given one."""
NEVER = "False"
"""The condition of types whose values are always converted."""

_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_SINGLE = struct.Struct("f")
_MAX_SINGLE = 3.4028234663852886e38


@dataclass(frozen=True)
class Conversion:
    """How values become values of a type."""

    convert: Callable[[Any], Any]
    """Returns a value of the type; raises TypeError, ValueError, OverflowError or AttributeError if there is none."""
    test: Callable[[str, Bind], str]
    """Writes the condition under which the value of a variable or expression can stay as it is; see ``NEVER``."""
    change: Callable[[str, Bind], tuple[str, str]] | None = None
    """Where values never stay as they are: writes a condition and what a value becomes under it."""

    def write(self, value: str, bind: Bind) -> str:
        """Writes the expression of the converted value of a variable."""
        convert = f"{bind('convert', self.convert)}({value})"
        test, changed = (self.test(value, bind), value) if self.change is None else self.change(value, bind)
        return convert if test == NEVER else f"({changed} if {test} else {convert})"

    def convert_all(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Returns a function that converts a batch."""
        convert_all: Callable[[Sequence[Any]], Sequence[Any]] = _compile(
            lambda bind: f"lambda values: [{self.write('v', bind)} for v in values]"
        )
        return convert_all

    def or_none(self) -> Conversion:
        """The conversion of values that may be None."""
        convert, test, change = self.convert, self.test, self.change

        def test_or_none(value: str, bind: Bind) -> str:
            condition = test(value, bind)
            return NEVER if condition == NEVER else f"({condition} or {value} is None)"

        return Conversion(lambda value: None if value is None else convert(value), test_or_none, change)


def _compile(write: Callable[[Bind], str]) -> Any:
    """Returns the function that a text defines."""
    names: dict[str, Any] = {}

    def bind(hint: str, value: Any) -> str:
        name = f"{hint}_{len(names)}"
        names[name] = value
        return name

    text = write(bind)
    # the name of the file tells a failure's account that the frame is not one of the program's
    return eval(compile(text, __file__, "eval"), names)  # noqa: S307 - our own text


def conversion_of(type_info: TypeInformation | None, *, wraps: bool = False) -> Conversion | None:
    """Returns how values become values of a type; None for a type that takes any value.

    An integer that is too large is an error or, with ``wraps``, keeps its lowest bits.

    >>> conversion_of(BasicTypeInfo.FLOAT_TYPE_INFO()).convert(0.1)
    0.10000000149011612
    """
    if isinstance(type_info, ExternalTypeInfo):
        return conversion_of(type_info._type_info, wraps=wraps)
    if isinstance(type_info, BasicTypeInfo):
        return _basic(type_info._basic_type, wraps)
    if isinstance(type_info, DateTypeInfo):
        return _DATE
    if isinstance(type_info, TimeTypeInfo):
        return _TIME
    if isinstance(type_info, TimestampTypeInfo):
        return _TIMESTAMP
    if isinstance(type_info, LocalTimeTypeInfo):
        return _LOCAL[type_info._time_type]
    if isinstance(type_info, TupleTypeInfo):
        return _tuple(type_info, wraps)
    if isinstance(type_info, RowTypeInfo):
        return _row(type_info, wraps)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        element = type_info.get_element_type()
        return _BYTES if element == BasicTypeInfo.BYTE_TYPE_INFO() else _list(element, nullable=False, wraps=wraps)
    if isinstance(type_info, (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)):
        return _list(type_info.get_element_type(), nullable=True, wraps=wraps)
    if isinstance(type_info, MapTypeInfo):
        return _map(type_info, wraps)
    return None


def _of_class(class_: type, convert: Callable[[Any], Any], and_: str = "") -> Conversion:
    def test(value: str, bind: Bind) -> str:
        more = f" and {and_.format(v=value)}" if and_ else ""
        return f"{value}.__class__ is {bind(class_.__name__, class_)}{more}"

    return Conversion(convert, test)


def _never(_value: str, _bind: Bind) -> str:
    return NEVER


# -- single values ------------------------------------------------------------------------------------


def _basic(basic_type: BasicType, wraps: bool) -> Conversion:
    if basic_type not in _BITS:
        return _BASIC[basic_type]
    bits = _BITS[basic_type]
    half = 1 << bits - 1

    def test(value: str, bind: Bind) -> str:
        # cheaper than two comparisons with large numbers; the lowest number, which has one bit more, is converted
        return f"{value}.__class__ is int and {bind('bits', int.bit_length)}({value}) < {bits}"

    return Conversion(lambda value: _to_int(value, half, wraps), test)


def _to_int(value: Any, half: int | None = None, wraps: bool = False) -> int:
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError("an integer is required")
    number = int(value)
    if half is not None and not -half <= number < half:
        if wraps:
            return (number + half) % (2 * half) - half
        raise OverflowError(f"{value!r} does not fit into {half.bit_length()} bits")
    return number


def _to_bool(value: Any) -> bool:
    if value.__class__.__name__ not in ("bool", "bool_"):
        value = _to_int(value)
    return bool(value)


def _to_float(value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError("a number is required")
    return float(value)


def _to_single(value: Any) -> float:
    number = _to_float(value)
    try:
        (single,) = _SINGLE.unpack(_SINGLE.pack(number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(single)


def _change_to_single(value: str, bind: Bind) -> tuple[str, str]:
    condition = f"{value}.__class__ is float and {-_MAX_SINGLE} <= {value} <= {_MAX_SINGLE}"
    return condition, f"{bind('unpack', _SINGLE.unpack)}({bind('pack', _SINGLE.pack)}({value}))[0]"


def _to_str(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("a str is required")
    return value if value is None else str.__str__(value)


def _to_decimal(value: Any) -> Decimal | None:
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, bool)) or not isinstance(value, (Decimal, int, float, str)):
        raise TypeError("a Decimal is required")
    return Decimal(str(value))


def _to_instant(value: Any) -> Instant | None:
    if value is not None and not isinstance(value, Instant):
        raise TypeError("an Instant is required")
    return value


def _to_date(value: Any) -> dt.date:
    return dt.date(value.year, value.month, value.day)


def _to_time(value: Any) -> dt.time:
    return dt.time(value.hour, value.minute, value.second, value.microsecond)


def _to_datetime(value: Any) -> dt.datetime:
    return dt.datetime.combine(_to_date(value), _to_time(value))


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None, fold=0)


def _to_sql_timestamp(value: Any) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        raise TypeError("a datetime is required")
    converted: dt.datetime = _without_zone(value)
    return converted


def _to_bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return bytes([element & 0xFF for element in value])


_IS_LOCAL = "{v}.tzinfo is None"
_BASIC = {
    BasicType.BOOLEAN: _of_class(bool, _to_bool),
    BasicType.FLOAT: Conversion(_to_single, _never, _change_to_single),
    BasicType.DOUBLE: _of_class(float, _to_float),
    BasicType.STRING: _of_class(str, _to_str),
    BasicType.CHAR: _of_class(str, _to_str),
    BasicType.BIG_INT: _of_class(int, lambda value: None if value is None else _to_int(value)),
    BasicType.BIG_DEC: _of_class(Decimal, _to_decimal),
    BasicType.INSTANT: _of_class(Instant, _to_instant),
}
_DATE = _of_class(dt.date, _to_date).or_none()
_TIME = _of_class(dt.time, _without_zone, _IS_LOCAL).or_none()
_TIMESTAMP = _of_class(dt.datetime, _to_sql_timestamp, _IS_LOCAL).or_none()
_LOCAL = {
    LocalTimeTypeInfo.TimeType.LOCAL_DATE: _DATE,
    LocalTimeTypeInfo.TimeType.LOCAL_TIME: _of_class(dt.time, _to_time, _IS_LOCAL).or_none(),
    LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: _of_class(dt.datetime, _to_datetime, _IS_LOCAL).or_none(),
}
_BYTES = _of_class(bytes, _to_bytes)


# -- composite values ---------------------------------------------------------------------------------


def _write_fields(parts: Sequence[Conversion | None], value: str, bind: Bind) -> str:
    fields = [f"{value}[{i}]" for i in range(len(parts))]
    return "".join(
        f"{field if part is None else part.write(field, bind)}, " for field, part in zip(fields, parts, strict=True)
    )


def _tuple(type_info: TupleTypeInfo, wraps: bool) -> Conversion:
    parts = [conversion_of(field, wraps=wraps) for field in type_info.get_field_types()]
    count = len(parts)
    convert_fields = _compile(lambda bind: f"lambda v: ({_write_fields(parts, 'v', bind)})")

    def convert(value: Any) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) < count:
            raise TypeError(f"a tuple of {count} fields is required")
        return convert_fields(value)

    def test(value: str, bind: Bind) -> str:
        tests = [f"{value}.__class__ is tuple", f"len({value}) == {count}"]
        tests += [part.test(f"{value}[{i}]", bind) for i, part in enumerate(parts) if part is not None]
        return NEVER if NEVER in tests else f"({' and '.join(tests)})"

    return Conversion(convert, test)


def _row(type_info: RowTypeInfo, wraps: bool) -> Conversion:
    found = [conversion_of(field, wraps=wraps) for field in type_info.get_field_types()]
    parts = [None if part is None else part.or_none() for part in found]
    names = tuple(type_info.get_field_names())
    convert_fields = _compile(lambda bind: f"lambda v: [{_write_fields(parts, 'v', bind)}]")

    def convert(value: Any) -> Row:
        values = values_by_name(value, names)
        if values is None or len(values) != len(names):
            raise TypeError(f"a Row of {len(names)} fields is required")
        row = named_row(names, convert_fields(values))
        if isinstance(value, Row):
            row.set_row_kind(value.get_row_kind())
        return row

    def test(value: str, bind: Bind) -> str:
        fields = [part.test(f"{value}._values[{i}]", bind) for i, part in enumerate(parts) if part is not None]
        if NEVER in fields:
            return NEVER
        tests = [f"{value}.__class__ is {bind('Row', Row)}", f"{value}._fields == {bind('names', names)}"]
        tests += [f"len({value}._values) == {len(names)}", *fields]
        return f"({' and '.join(tests)})"

    return Conversion(convert, test)


def _list(element: TypeInformation, nullable: bool, wraps: bool) -> Conversion:
    part = conversion_of(element, wraps=wraps)
    if part is not None and nullable:
        part = part.or_none()
    convert_all: Callable[[Sequence[Any]], Sequence[Any]] = list if part is None else part.convert_all()

    def convert(value: Any) -> Any:
        if value.__class__ is list:
            return convert_all(value)
        if isinstance(value, (str, bytes, bytearray, dict, Row)):
            raise TypeError("a list is required")
        return convert_all(list(value))

    return Conversion(convert, _never)


def _map(type_info: MapTypeInfo, wraps: bool) -> Conversion:
    key = conversion_of(type_info.get_key_type(), wraps=wraps)
    item = conversion_of(type_info.get_value_type(), wraps=wraps)

    def write(bind: Bind) -> str:
        name = "k" if key is None else key.write("k", bind)
        entry = "v" if item is None else item.or_none().write("v", bind)
        return f"lambda values: {{{name}: {entry} for k, v in values.items()}}"

    return Conversion(_compile(write), _never)
