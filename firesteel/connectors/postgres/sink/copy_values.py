"""COPY encoding of values, in binary and text form.

Which of the two is taken depends on all values of a batch and of those before, so it must not matter. Where psycopg's
own dumpers differ between the forms, or send another value than the one given, those here take their place.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any
from uuid import UUID

from firesteel.types.python import MIN_SINGLE, to_single

__all__ = [
    "BINARY_TYPES",
    "Converter",
    "binary_check",
    "binary_converter",
    "checked_dumpers",
    "text_converter",
]

Converter = Callable[[Any], Any]

BINARY_TYPES = frozenset(
    {
        *("smallint", "integer", "bigint", "real", "double precision", "numeric", "text", "character varying"),
        *("bytea", "boolean", "date", "timestamp without time zone", "timestamp with time zone"),
        *("time without time zone", "uuid", "json", "jsonb"),
    }
)
"""Types that are sent in binary form, as are arrays of them: a tenth of the time of text."""

_NUMBERS = frozenset({int, float, Decimal, str})
_TEXTS = (str, bytes, bytearray, memoryview)


def binary_check(types: Sequence[str]) -> Callable[[Sequence[Sequence[Any]]], None]:
    """What is checked of rows of these types before the dumpers get them: raises if a number would become another.

    Dumpers in Python would cost as much as all the rest, so that the usual values are looked at many at once.
    """
    doubles = [index for index, name in enumerate(types) if name == "double precision"]
    reals = [index for index, name in enumerate(types) if name == "real"]

    def check(rows: Sequence[Sequence[Any]]) -> None:
        for index in doubles:
            if not _KEPT.issuperset(map(type, map(itemgetter(index), rows))):
                for value in map(itemgetter(index), rows):
                    _verify_double(value)
        for index in reals:
            _verify_reals(map(itemgetter(index), rows))

    return check


def binary_converter(type_name: str) -> Converter | None:
    """What is done to a value before its dumper gets it; None if nothing is."""
    if not type_name.endswith("[]"):
        return None
    # a list in a list may be an element or a dimension: it is an element, as in text
    if type_name in ("json[]", "jsonb[]"):
        return _json_items
    return partial(_only_list, verify=_VERIFY.get(type_name.removesuffix("[]")))


def text_converter(type_name: str) -> Converter | None:
    """What is made of a value whose text is sent; None if psycopg's own text will do."""
    element = type_name.removesuffix("[]")
    convert = _SCALARS.get(element)
    if element == type_name:
        return convert
    if element not in BINARY_TYPES:
        return None
    if convert is _to_json:
        return lambda value: value if isinstance(value, str) else _array(_json_items(value), None)
    return partial(_array, convert=convert)


def checked_dumpers() -> list[tuple[type, Any]]:
    """Dumpers for types of which psycopg's own would send something else without a word if a value does not fit."""
    if _dumpers:
        return _dumpers
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    def make(python_type: type, oid: int, dump: Callable[[Any], bytes]) -> tuple[type, Any]:
        members = {"format": Format.BINARY, "oid": oid, "dump": staticmethod(dump)}
        return python_type, type(f"Checked{oid}Dumper", (Dumper,), members)

    _dumpers.extend(
        [
            make(int, 21, struct.Struct("!h").pack),
            make(int, 23, struct.Struct("!i").pack),
            make(float, 700, struct.Struct("!f").pack),
            make(bool, 16, {True: b"\x01", False: b"\x00"}.__getitem__),
            make(dt.time, 1083, _pack_time),
        ]
    )
    return _dumpers


_dumpers: list[tuple[type, Any]] = []


def _verify_reals(values: Iterable[Any]) -> None:
    small = [value for value in values if value.__class__ is not float or -MIN_SINGLE < value < MIN_SINGLE]
    for value in small:
        if value:
            to_single(value)


def _verify_double(value: Any) -> None:
    if value is None or value.__class__ is float:
        return
    number = float(value)
    if (math.isinf(number) and not _is_infinite(value)) or (value and not number):
        raise OverflowError(f"{value!r} is out of range for type double precision")


def _pack_time(value: dt.time) -> bytes:
    if value.tzinfo is not None:
        raise TypeError("a time with a zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _TIME.pack(seconds * 10**6 + value.microsecond)


_TIME = struct.Struct("!q")
_KEPT = frozenset({type(None), float, int, bool, str, bytes, dt.datetime, dt.date, dt.time, UUID, list, dict})
"""Classes that no dumper of doubles takes and changes: it takes the first four as they are, and refuses the others."""
_VERIFY: dict[str, Callable[[Any], Any]] = {
    "real": lambda value: _verify_reals([value]),
    "double precision": _verify_double,
}


def _is_infinite(value: Any) -> bool:
    try:
        return bool(value in (math.inf, -math.inf))
    except ArithmeticError:
        return False


# -- text -----------------------------------------------------------------------------------------------


def _integer(value: Any) -> Any:
    """True and False are 1 and 0; so is any whole number of another class what it stands for."""
    if value.__class__ in _NUMBERS:
        return value
    try:
        return operator.index(value)
    except TypeError:
        return value


def _boolean(value: Any) -> Any:
    """What is equal to True or False is that, as in binary form."""
    try:
        return {True: True, False: False}.get(value, value)
    except TypeError:
        return value


def _double(value: Any) -> Any:
    if value.__class__ in _NUMBERS or isinstance(value, _TEXTS):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _real(value: Any) -> Any:
    if isinstance(value, _TEXTS):
        return value
    try:
        # rounded once, as in binary form, and not from the digits of a longer number
        return to_single(_double(value))
    except (OverflowError, TypeError, ValueError):
        return value


def _to_json(value: Any) -> Any:
    from psycopg.types.json import Json, Jsonb

    return value if isinstance(value, (Json, Jsonb)) else Jsonb(value)


def _json_items(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise TypeError("a list is needed")
    return [None if item is None else _to_json(item) for item in value]


def _only_list(value: Any, verify: Callable[[Any], Any] | None) -> Any:
    # psycopg takes any empty value, or 0, for an empty array
    if value.__class__ is not list:
        raise TypeError("a list is needed")
    if verify is not None:
        for item in value:
            _only_list(item, verify) if item.__class__ is list else verify(item)
    return value


def _without_zone(value: Any) -> Any:
    # the server would just drop the zone
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    return value


def _time_without_zone(value: Any) -> Any:
    if isinstance(value, dt.time) and value.utcoffset() is not None:
        # on any day: an offset that is known without one is the same on all
        return dt.datetime.combine(dt.date(2000, 1, 2), value).astimezone(dt.timezone.utc).time()
    return value


_SCALARS: dict[str, Converter] = {
    "smallint": _integer,
    "integer": _integer,
    "bigint": _integer,
    "numeric": _integer,
    "real": _real,
    "double precision": _double,
    "boolean": _boolean,
    "json": _to_json,
    "jsonb": _to_json,
    "timestamp without time zone": _without_zone,
    "time without time zone": _time_without_zone,
}


def _array(value: Any, convert: Converter | None) -> Any:
    """An array's text. psycopg's takes elements of one Python type only."""
    from psycopg.adapt import Transformer

    if not isinstance(value, (list, tuple)):
        return value
    parts: list[str] = []
    _write_array(value, convert, Transformer(), parts)
    return "".join(parts)


def _write_array(items: Any, convert: Converter | None, transformer: Any, parts: list[str]) -> None:
    from psycopg.adapt import PyFormat

    parts.append("{")
    for number, item in enumerate(items):
        if number:
            parts.append(",")
        if isinstance(item, (list, tuple)):
            _write_array(item, convert, transformer, parts)
            continue
        if item is not None and convert is not None:
            item = convert(item)
        if item is None:
            parts.append("NULL")
            continue
        if isinstance(item, (bytes, bytearray, memoryview)):
            # without a connection psycopg does not know which of two forms the server reads
            text = f"\\x{bytes(item).hex()}"
        else:
            text = bytes(transformer.get_dumper(item, PyFormat.TEXT).dump(item)).decode()
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        parts.append(f'"{escaped}"')
    parts.append("}")
