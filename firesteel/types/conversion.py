"""Conversion of records to their declared type, as the coders of PyFlink convert what leaves Python.

A FLOAT is rounded to 32 bits, a float for an INT is cut, a Row gets the names of its type, a timestamp of SQL has
no time zone. Most records are of their type already: an expression that a generated loop evaluates tells it, and only
other records are converted. A value that cannot be converted raises an error.
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

__all__ = ["Conversion", "conversion_of"]

Bind = Callable[[str, Any], str]
"""Makes an object known to an expression: returns the name for it, like the given one."""

_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_SINGLE = struct.Struct("f")


@dataclass(frozen=True)
class Conversion:
    """How values become values of a type."""

    convert: Callable[[Any], Any]
    """Returns a value of the type; raises TypeError, ValueError, OverflowError or AttributeError if there is none."""
    test: Callable[[str, Bind], str]
    """Writes the condition under which the value of a variable or expression can stay as it is."""

    def convert_all(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Returns a function that converts a batch."""
        names: dict[str, Any] = {"convert": self.convert}

        def bind(hint: str, value: Any) -> str:
            name = f"{hint}_{len(names)}"
            names[name] = value
            return name

        text = f"lambda values: [v if {self.test('v', bind)} else convert(v) for v in values]"
        # the name of the file tells a failure's account that the frame is not one of the program's
        code = compile(text, __file__, "eval")
        convert_all: Callable[[Sequence[Any]], Sequence[Any]] = eval(code, names)  # noqa: S307 - our own text
        return convert_all

    def or_none(self) -> Conversion:
        """The conversion of values that may be None."""
        convert, test = self.convert, self.test
        return Conversion(
            lambda value: None if value is None else convert(value),
            lambda value, bind: f"({value} is None or {test(value, bind)})",
        )


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
    return "False"


# -- single values ------------------------------------------------------------------------------------


def _basic(basic_type: BasicType, wraps: bool) -> Conversion:
    if basic_type in _BITS:
        half = 1 << _BITS[basic_type] - 1
        return _of_class(int, lambda value: _to_int(value, half, wraps), f"-{half} <= {{v}} < {half}")
    return _BASIC[basic_type]


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
    BasicType.FLOAT: Conversion(_to_single, _never),
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


def _tuple(type_info: TupleTypeInfo, wraps: bool) -> Conversion:
    parts = [conversion_of(field, wraps=wraps) for field in type_info.get_field_types()]
    count = len(parts)
    converters = [None if part is None else part.convert for part in parts]

    def convert(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (tuple, list)) or len(value) < count:
            raise TypeError(f"a tuple of {count} fields is required")
        return tuple(
            [
                field if convert_field is None else convert_field(field)
                for field, convert_field in zip(value, converters, strict=False)
            ]
        )

    def test(value: str, bind: Bind) -> str:
        tests = [f"{value}.__class__ is tuple", f"len({value}) == {count}"]
        tests += [part.test(f"{value}[{i}]", bind) for i, part in enumerate(parts) if part is not None]
        return "False" if "False" in tests else f"({' and '.join(tests)})"

    return Conversion(convert, test)


def _row(type_info: RowTypeInfo, wraps: bool) -> Conversion:
    found = [conversion_of(field, wraps=wraps) for field in type_info.get_field_types()]
    parts = [None if part is None else part.or_none() for part in found]
    names = tuple(type_info.get_field_names())
    converters = [None if part is None else part.convert for part in parts]

    def convert(value: Any) -> Row:
        values = values_by_name(value, names)
        if values is None or len(values) != len(names):
            raise TypeError(f"a Row of {len(names)} fields is required")
        row = named_row(
            names,
            [
                field if convert_field is None else convert_field(field)
                for field, convert_field in zip(values, converters, strict=True)
            ],
        )
        if isinstance(value, Row):
            row.set_row_kind(value.get_row_kind())
        return row

    def test(value: str, bind: Bind) -> str:
        fields = [part.test(f"{value}._values[{i}]", bind) for i, part in enumerate(parts) if part is not None]
        if any("or False" in field for field in fields):
            return "False"
        tests = [f"{value}.__class__ is {bind('Row', Row)}", f"{value}._fields == {bind('names', names)}"]
        tests += [f"len({value}._values) == {len(names)}", *fields]
        return f"({' and '.join(tests)})"

    return Conversion(convert, test)


def _list(element: TypeInformation, nullable: bool, wraps: bool) -> Conversion:
    part = conversion_of(element, wraps=wraps)
    if part is not None and nullable:
        part = part.or_none()
    convert_all: Callable[[Sequence[Any]], Sequence[Any]] = list if part is None else part.convert_all()

    def convert(value: Any) -> list[Any]:
        if isinstance(value, (str, bytes, bytearray, dict, Row)):
            raise TypeError("a list is required")
        return list(convert_all(list(value)))

    return Conversion(convert, _never)


def _as_it_is(value: Any) -> Any:
    return value


def _map(type_info: MapTypeInfo, wraps: bool) -> Conversion:
    key = conversion_of(type_info.get_key_type(), wraps=wraps)
    item = conversion_of(type_info.get_value_type(), wraps=wraps)
    convert_key = _as_it_is if key is None else key.convert
    convert_item = _as_it_is if item is None else item.or_none().convert
    return Conversion(lambda value: {convert_key(name): convert_item(entry) for name, entry in value.items()}, _never)
