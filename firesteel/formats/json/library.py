"""JSON library: orjson where it is installed, else the standard library, with the same values either way.

Where the two differ by themselves, this is what holds:

- An integer beyond 64 bits becomes a float, unless exact numbers are asked for.
- NaN, Infinity and numbers beyond a float's range are no JSON; when written, they become null.
- Of keys that occur twice the last one counts.
- Text must be UTF-8 without lone surrogates, neither as bytes nor as escapes. A byte order mark is passed over.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from firesteel.common.time import Instant
from firesteel.common.types import Row
from firesteel.types.temporal_text import format_instant

__all__ = ["JsonCodec", "JsonNumber", "verbatim_text"]

_BOM = b"\xef\xbb\xbf"
_BLANKS = " \t\n\r"
_SIGNED_64 = 1 << 63
_UNSIGNED_64 = 1 << 64


class JsonNumber(Decimal):
    """A number with a fraction or an exponent, and the ``text`` it had in JSON."""

    def __init__(self, text: str) -> None:
        self.text = text


class JsonCodec:
    """Reads and writes JSON with the library that is there.

    ``exact`` gives integers of any size and ``Decimal`` for numbers with fractions, ``verbatim`` a :class:`JsonNumber`
    for these; the standard library does that.
    """

    def __init__(self, *, exact: bool = False, verbatim: bool = False, library: str | None = None) -> None:
        orjson = None if exact or verbatim or library == "json" else _orjson()
        self.library = "json" if orjson is None else "orjson"
        parse_float = JsonNumber if verbatim else Decimal if exact else _finite_float
        self.loads: Callable[[bytes], Any] = (
            _standard_loads(parse_float, int if exact or verbatim else _integer_of_64_bits)
            if orjson is None
            else orjson.loads
        )
        """The value of a message; raises ValueError."""
        self.dumps: Callable[[Any], bytes] = _standard_dumps if orjson is None else _orjson_dumps(orjson)
        """The bytes of a value; raises TypeError or ValueError."""

    def load(self, message: bytes) -> Any:
        """The value of a message, behind a byte order mark if there is one; raises ValueError."""
        try:
            return self.loads(message)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except ValueError:
            if bytes(message[:3]) == _BOM:
                return self.loads(message[3:])
            raise


def _orjson() -> Any:
    try:
        import orjson
    except ImportError:
        return None
    return orjson


def _standard_loads(parse_float: Callable[[str], Any], parse_int: Callable[[str], Any]) -> Callable[[bytes], Any]:
    decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=parse_float, parse_int=parse_int)
    scan = decoder.scan_once  # type: ignore[attr-defined]

    def loads(message: bytes) -> Any:
        text = str(message, "utf-8")
        try:
            value, end = scan(text, 0)
        except StopIteration:
            value = decoder.decode(text.strip(_BLANKS))
        else:
            if end < len(text) and text[end:].strip(_BLANKS):
                raise json.JSONDecodeError("Extra data", text, end)
        if "\\u" in text:
            _encode(value)  # finds lone surrogates
        return value

    return loads


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("number is infinity when parsed as double")
    return value


def _integer_of_64_bits(text: str) -> int | float:
    if len(text) < 19:
        return int(text)
    if len(text) > 20:
        return _finite_float(text)
    value = int(text)
    return value if -_SIGNED_64 <= value < _UNSIGNED_64 else float(value)


def verbatim_text(value: Any) -> str:
    """The text of a value that was read with ``verbatim``: without blanks, its numbers as they were."""
    if isinstance(value, JsonNumber):
        return value.text
    if isinstance(value, list):
        return f"[{','.join(map(verbatim_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{verbatim_text(key)}:{verbatim_text(item)}' for key, item in value.items())}}}"
    return _ENCODER.encode(value)


def _encode(value: Any, allow_nan: bool = True) -> bytes:
    return (_ENCODER if allow_nan else _STRICT_ENCODER).encode(value).encode("utf-8")


def _standard_dumps(value: Any) -> bytes:
    try:
        try:
            return _encode(value, allow_nan=False)
        except UnicodeEncodeError:
            raise
        except ValueError:
            return _encode(_without_nan(value), allow_nan=False)
    except RecursionError:
        raise ValueError("nested too deeply, or in itself") from None


def _orjson_dumps(orjson: Any) -> Callable[[Any], bytes]:
    dumps = orjson.dumps
    options = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_APPEND_NEWLINE

    def encode(value: Any) -> bytes:
        try:
            # Cutting something off copies: what orjson returns sits in a buffer of 1 KiB that was shrunk in place,
            # and to keep many of those costs ten times what it takes to write them.
            encoded: bytes = dumps(value, json_value, options)[:-1]
        except TypeError:
            # Integers beyond 64 bits and keys that are no strings: the standard library knows what to do with them.
            return _standard_dumps(value)
        return encoded

    return encode


def json_value(value: Any) -> Any:
    """What stands in JSON for a value it does not know: text for times, decimals and bytes, an object for a row."""
    if isinstance(value, Row):
        return list(value) if value.get_field_names() is None else value.as_dict()
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Instant):
        return format_instant(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return value.tolist()  # numpy's numbers and arrays
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=json_value, check_circular=False)
_STRICT_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=json_value, check_circular=False, allow_nan=False
)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    if value is None or isinstance(value, (str, int)):
        return value
    return _without_nan(json_value(value))
