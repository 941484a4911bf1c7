"""Numbers as Java's: integers that wrap, floats of 32 bits, decimals of at most 38 digits."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np

from firesteel.types import logical as t

__all__ = [
    "CONTEXT",
    "fit_decimal",
    "parse_decimal",
    "parse_double",
    "parse_integer",
    "single",
    "truncate_to",
    "wrap",
]

CONTEXT = Context(prec=100, rounding=ROUND_HALF_UP)
_SPACES = "".join(map(chr, range(33)))
"""What Java's trim removes."""
_INTEGER = re.compile(r"([+-]?)(?=[\d.])(\d*)(?:\.(\d*))?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)
_SHORT_DECIMAL = re.compile(r"([+-]?\d*(?:\.\d*)?)(?:[eE]([+-]?\d+))?[\x00-\x7f]?\s*", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MAX_LONG_DIGITS = 18
_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)


def wrap(value: int, bits: int) -> int:
    """An integer as one of so many bits holds it."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def single(value: float) -> float:
    """The number of 32 bits next to a number."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def truncate_to(value: float, bits: int) -> int:
    """A float as an integer by Java's cast: the nearest that fits; a byte or short keeps the lowest bits of an int."""
    if math.isnan(value):
        return 0
    width = max(bits, 32)
    half = 1 << (width - 1)
    whole = half - 1 if value >= half else -half if value <= -half else int(value)
    return wrap(whole, bits)


def fit_decimal(value: Decimal, type_: t.DecimalType) -> Decimal | None:
    """A decimal rounded to the scale of a type; None if it has more digits before the point than the type."""
    assert type_.precision is not None
    assert type_.scale is not None
    try:
        rounded = value.quantize(Decimal(1).scaleb(-type_.scale), context=CONTEXT)
    except InvalidOperation:
        return None
    if rounded and rounded.adjusted() >= type_.precision - type_.scale:
        return None
    return rounded or abs(rounded)


def parse_integer(text: str, bits: int) -> int:
    """An integer from text; digits after a point are dropped. ValueError if there is none or it does not fit."""
    found = _INTEGER.fullmatch(text.strip(_SPACES))
    if found is None:
        raise ValueError(text)
    value = int(f"{found[1]}{found[2] or 0}")
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(text)
    return value


def parse_double(text: str) -> float:
    """A float from text as Java reads it."""
    stripped = text.strip(_SPACES)
    if _HEXADECIMAL.fullmatch(stripped):
        return float.fromhex(stripped.rstrip("fFdD") if stripped[-1] in "fFdD" else stripped)
    if not _DOUBLE.fullmatch(stripped):
        raise ValueError(text)
    return float(stripped.rstrip("fFdD") if stripped[-1:] in "fFdD" and stripped[-2:] != "ty" else stripped)


def parse_decimal(text: str, type_: t.DecimalType) -> Decimal:
    """A decimal of a type from text; ValueError if there is none or it does not fit.

    As in Flink, short text for a type of at most 18 digits may end with one character that is no part of a number.
    """
    assert type_.precision is not None
    stripped = text.strip(_SPACES)
    if type_.precision <= _MAX_LONG_DIGITS and len(text.encode()) <= _MAX_LONG_DIGITS:
        found = _SHORT_DECIMAL.fullmatch(stripped)
        if found is None or stripped in ("", "+", "-"):
            raise ValueError(text)
        digits = found[1] if any(map(str.isdigit, found[1])) else "0"
        value = Decimal(f"{digits}E{found[2] or 0}")
    elif _DECIMAL.fullmatch(stripped):
        value = Decimal(stripped)
    else:
        raise ValueError(text)
    fitted = fit_decimal(value, type_)
    if fitted is None:
        raise ValueError(text)
    return fitted
