"""Java's ``String.format``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from firesteel.table.values.java_units import java_length

__all__ = ["FormatterError", "java_format"]

_CONTEXT = Context(prec=800)
_SPECIFIER = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")


class FormatterError(ValueError):
    """A pattern or value for which Java throws."""


def java_format(pattern: str, values: Sequence[Any]) -> str:
    """The text of values in a pattern.

    >>> java_format("%s-%05d", ["a", 42])
    'a-00042'
    """
    parts: list[str] = []
    at, ordinary = 0, 0
    while at < len(pattern):
        if pattern[at] != "%":
            end = pattern.find("%", at)
            end = len(pattern) if end < 0 else end
            parts.append(pattern[at:end])
            at = end
            continue
        found = _SPECIFIER.match(pattern, at)
        if found is None:
            raise FormatterError(pattern)
        at = found.end()
        index, flags, width, precision, conversion = found.groups()
        if conversion in "n%":
            parts.append("\n" if conversion == "n" else "%")
            continue
        if index is None:
            index, ordinary = ordinary, ordinary + 1
        else:
            index = int(index) - 1
        if index >= len(values):
            raise FormatterError("missing argument")
        parts.append(
            _field(values[index], flags, int(width or 0), None if precision is None else int(precision), conversion)
        )
    return "".join(parts)


def _field(value: Any, flags: str, width: int, precision: int | None, conversion: str) -> str:
    lower = conversion.lower()
    if lower == "b":
        text = "true" if value is True or (value is not None and value is not False) else "false"
    elif value is None:
        text = "null"
    elif lower == "s":
        text = _text(value)
    elif lower == "c":
        text = _character(value)
    elif lower == "d":
        return _padded(_integer(value, flags), flags, width)
    elif lower in "xo":
        text = _radix(value, lower)
        return _padded(text.upper() if conversion == "X" else text, flags, width)
    elif lower in "fe":
        return _padded(_decimal(value, 6 if precision is None else precision, lower, flags), flags, width)
    else:
        raise FormatterError(f"unknown conversion {conversion}")
    if precision is not None:
        text = text[:precision]
    text = text.upper() if conversion.isupper() else text
    width -= java_length(text) - len(text)
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _character(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return chr(value)
    raise FormatterError("not a character")


def _integer(value: Any, flags: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise FormatterError("not an integer")
    text = f"{abs(value):,}" if "," in flags else str(abs(value))
    return _signed(text, value < 0, flags)


def _signed(text: str, negative: bool, flags: str) -> str:
    if negative:
        return f"({text})" if "(" in flags else f"-{text}"
    return f"+{text}" if "+" in flags else f" {text}" if " " in flags else text


def _radix(value: Any, conversion: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise FormatterError("not an integer")
    bits = 32 if -(1 << 31) <= value < 1 << 31 else 64
    return f"{value & ((1 << bits) - 1):{conversion}}"


def _decimal(value: Any, precision: int, conversion: str, flags: str) -> str:
    if not isinstance(value, (float, Decimal)):
        raise FormatterError("not a decimal number")
    number = Decimal(repr(value)) if isinstance(value, float) else value
    if not number.is_finite():
        return "NaN" if number.is_nan() else _signed("Infinity", number < 0, flags)
    if conversion == "e":
        return _signed(f"{abs(float(value)):.{precision}e}", float(value) < 0, flags)
    rounded = abs(number).quantize(Decimal(1).scaleb(-precision), rounding=ROUND_HALF_UP, context=_CONTEXT)
    return _signed(f"{rounded:,f}" if "," in flags else f"{rounded:f}", number.is_signed(), flags)


def _padded(text: str, flags: str, width: int) -> str:
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and text not in ("NaN", "Infinity", "-Infinity"):
        sign = text[:1] if text[:1] in "+-( " else ""
        return sign + text[len(sign) :].rjust(width - len(sign), "0")
    return text.rjust(width)
