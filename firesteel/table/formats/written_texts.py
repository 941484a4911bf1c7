"""Texts of dates, times and decimals as the formats of Flink write them."""

from __future__ import annotations

from decimal import Decimal

from firesteel.table.formats.texts import NANOS_PER_DAY
from firesteel.table.values.temporal_text import date_text

__all__ = ["date_text", "stripped", "time_text", "timestamp_text"]


def time_text(millis: int) -> str:
    """10:11:12, or 10:11:12.3."""
    seconds, rest = divmod(millis, 1000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{rest:03}".rstrip("0") if rest else text


def timestamp_text(nanos: int, is_iso: bool = False) -> str:
    """2020-01-02 10:11:12.3: without zeros at the end.

    >>> timestamp_text(1_577_959_872_300_000_000)
    '2020-01-02 10:11:12.3'
    """
    days, rest = divmod(nanos, NANOS_PER_DAY)
    seconds, fraction = divmod(rest, 10**9)
    text = f"{date_text(days)}{'T' if is_iso else ' '}"
    text += f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text


def stripped(value: Decimal) -> str:
    """A decimal without zeros at the end, as Java's BigDecimal prints it.

    >>> [stripped(Decimal(text)) for text in ("100", "1.50", "0.0000000001", "0.00")]
    ['1E+2', '1.5', '1E-10', '0']
    """
    if not value:
        return "0"
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    scale = -exponent
    adjusted = exponent + len(text) - 1
    minus = "-" if sign else ""
    if scale == 0:
        return minus + text
    if scale > 0 and adjusted >= -6:
        if len(text) > scale:
            return f"{minus}{text[:-scale]}.{text[-scale:]}"
        return f"{minus}0.{text.rjust(scale, '0')}"
    mantissa = text[0] + (f".{text[1:]}" if len(text) > 1 else "")
    return f"{minus}{mantissa}E{'+' if adjusted >= 0 else '-'}{abs(adjusted)}"
