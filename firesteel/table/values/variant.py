"""Values of the type VARIANT: JSON text in one form, so that equal values are equal texts.

The keys of objects are sorted. A number is an integer of 64 bits, a decimal of at most 38 digits as it was written, or
a double, which always has an exponent.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import lru_cache
from typing import Any

from firesteel.types.java_text import to_java_double

__all__ = ["VariantError", "element", "field", "parse_variant", "variant_text"]

_MAX_DIGITS = 38
_LONG = range(-(2**63), 2**63)
_SPACE = " \t\r\n"


class VariantError(ValueError):
    """Text that is no JSON, or a value that has no field or element."""


class _Double(float):
    """A number that is neither an integer nor a short decimal."""


def _integer(text: str) -> Any:
    number = int(text)
    return number if number in _LONG else _decimal(text)


def _number(text: str) -> Any:
    return _Double(text) if "e" in text or "E" in text else _decimal(text)


def _decimal(text: str) -> Any:
    number = Decimal(text)
    digits, exponent = len(number.as_tuple().digits), -int(number.as_tuple().exponent)
    if max(digits, exponent) > _MAX_DIGITS:
        return _Double(text)
    return number or abs(number)


def _no_constant(text: str) -> Any:
    raise VariantError(f"Unrecognized token '{text}'")


def _unique(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(entries)
    if len(found) < len(entries):
        raise VariantError("VARIANT_DUPLICATE_KEY")
    return found


def _decoder(**options: Any) -> json.JSONDecoder:
    return json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_no_constant, **options)


_STRICT = _decoder(object_pairs_hook=_unique)
_LENIENT = _decoder()


def parse_variant(text: str, allows_duplicates: bool = False) -> str:
    """The value of JSON text. What follows the first value is left out, as in Flink.

    >>> parse_variant('{"b": 1.50, "a": [1e2]}')
    '{"a":[1.0E2],"b":1.50}'
    """
    stripped = text.lstrip(_SPACE)
    if not stripped:
        raise VariantError("Unexpected null token")
    try:
        value, end = (_LENIENT if allows_duplicates else _STRICT).raw_decode(stripped)
    except RecursionError as error:
        raise VariantError("The nesting is too deep") from error
    except ValueError as error:
        raise VariantError(str(error)) from error
    rest = stripped[end : end + 1]
    if rest and rest not in _SPACE and not isinstance(value, (dict, list, str)):
        raise VariantError(f"Unexpected character '{rest}'")
    return _dump(value, _exact)


def field(value: str, key: str) -> str | None:
    """The value of a key of an object."""
    found = _load(value)
    if not isinstance(found, dict):
        raise VariantError(
            "String key access on variant requires an object variant, but a non-object variant was provided."
        )
    return _dump(found[key], _exact) if key in found else None


def element(value: str, index: int) -> str | None:
    """An element of an array; the first one has the number 1."""
    found = _load(value)
    if not isinstance(found, list):
        raise VariantError(
            "Integer index access on variant requires an array variant, but a non-array variant was provided."
        )
    return _dump(found[index - 1], _exact) if 1 <= index <= len(found) else None


def variant_text(value: str) -> str:
    """The value as JSON, with numbers as Flink writes them.

    >>> variant_text(parse_variant('[1e2, 1.50]'))
    '[100.0,1.5]'
    """
    return _dump(_load(value), _shown)


@lru_cache(maxsize=1024)
def _load(value: str) -> Any:
    return _LENIENT.decode(value)


def _exact(number: Any) -> str:
    if not isinstance(number, float):
        return f"{number:f}" if isinstance(number, Decimal) else str(number)
    if number in (float("inf"), float("-inf")):
        return f"{'-' if number < 0 else ''}1E400"
    text = to_java_double(number)
    return text if "E" in text else _with_exponent(text)


def _with_exponent(text: str) -> str:
    """The digits of a double with an exponent.

    >>> _with_exponent("100.0"), _with_exponent("-0.5"), _with_exponent("0.0")
    ('1.0E2', '-5.0E-1', '0.0E0')
    """
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    head, *rest = digits
    tail = "".join(map(str, rest)) or "0"
    power = exponent + len(digits) - 1 if any(digits) else 0
    return f"{'-' if sign else ''}{head}.{tail}E{power}"


def _shown(number: Any) -> str:
    if isinstance(number, float):
        return to_java_double(number)
    return f"{number.normalize():f}" if isinstance(number, Decimal) else str(number)


def _dump(value: Any, number_text: Any) -> str:
    match value:
        case dict():
            entries = sorted(value.items(), key=lambda entry: entry[0].encode("utf-16-be", "surrogatepass"))
            return f"{{{','.join([f'{_string(key)}:{_dump(item, number_text)}' for key, item in entries])}}}"
        case list():
            return f"[{','.join([_dump(item, number_text) for item in value])}]"
        case str():
            return _string(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
    text: str = number_text(value)
    return text


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
