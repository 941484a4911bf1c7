"""Texts of dates, times and decimals in messages, as the formats of Flink read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.table.values.calendar import day_number
from firesteel.table.values.numbers import fit_decimal
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import arrow_type, to_column

__all__ = ["NANOS_PER_DAY", "TextFormats", "to_decimal"]

NANOS_PER_DAY = 86_400_000_000_000
_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_FULL_TIME = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_TIME_TEXT = re.compile(_FULL_TIME, re.ASCII)
_SQL = re.compile(f"{_DATE} {_FULL_TIME}", re.ASCII)
_ISO = re.compile(rf"{_DATE}T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{{1,9}}))?)?", re.ASCII)


@dataclass(frozen=True)
class TextFormats:
    """The two standards: ``2020-01-02 10:11:12.345`` (SQL), or with a T between date and time (ISO-8601)."""

    is_iso: bool = False

    def date(self, text: str) -> int:
        """The days since 1970."""
        return _days(_matched(_DATE_TEXT, text).groups())

    def time(self, text: str) -> int:
        """The milliseconds since midnight."""
        return _nanos(_matched(_TIME_TEXT, text).groups()) // 1_000_000

    def timestamp(self, text: str, precision: int) -> int:
        """The nanoseconds since 1970, without digits beyond the precision."""
        groups = _matched(_ISO if self.is_iso else _SQL, text).groups()
        nanos = _days(groups[:3]) * NANOS_PER_DAY + _nanos(groups[3:])
        unit = int(10 ** (9 - precision))
        return nanos // unit * unit

    def instant(self, text: str, precision: int) -> int:
        """The same in UTC, which Z says."""
        if not text.endswith("Z"):
            raise ValueError(f"{text!r} does not end with Z")
        return self.timestamp(text[:-1], precision)

    def to_column(self, texts: list[str | None], type_: t.LogicalType) -> Any:
        """The column of texts; ValueError if one of them is none of the type."""
        if isinstance(type_, (t.TimestampType, t.LocalZonedTimestampType)) and len(texts) > 16:
            column = self._timestamps(texts, type_)
            if column is not None:
                return column
        return to_column([None if text is None else self.value(text, type_) for text in texts], type_)

    def value(self, text: str, type_: t.LogicalType) -> int:
        """What a row holds for a text of one of the four types."""
        match type_:
            case t.DateType():
                return self.date(text)
            case t.TimeType():
                return self.time(text)
            case t.LocalZonedTimestampType():
                return self.instant(text, type_.precision)
        assert isinstance(type_, t.TimestampType)
        return self.timestamp(text, type_.precision)

    def _timestamps(self, texts: list[str | None], type_: t.LogicalType) -> Any:
        """The column without a loop over rows; None if a text is not plainly one."""
        import pyarrow.compute as pc

        pa = require_pyarrow("SQL")
        column = pa.array(texts, pa.string())
        is_instant = isinstance(type_, t.LocalZonedTimestampType)
        pattern = (
            rf"^\d{{4}}-\d\d-\d\d{'T' if self.is_iso else ' '}\d\d:\d\d:\d\d(\.\d{{1,9}})?{'Z' if is_instant else ''}$"
        )
        if pc.all(pc.match_substring_regex(column, pattern)).as_py() is False:
            return None
        try:
            zoned = column.cast(pa.timestamp("ns", tz="UTC" if is_instant else None))
        except pa.ArrowInvalid:
            return None
        return zoned.cast(arrow_type(type_), safe=False)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(f"Text '{text}' could not be parsed")
    return found


def _days(groups: tuple[Any, ...]) -> int:
    return day_number(int(groups[0]), int(groups[1]), int(groups[2]))


def _nanos(groups: tuple[Any, ...]) -> int:
    hour, minute, second = int(groups[0]), int(groups[1]), int(groups[2] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{hour}:{minute}:{second} is no time of day")
    return (hour * 3600 + minute * 60 + second) * 10**9 + int(f"{groups[3] or '0':0<9}")


def to_decimal(number: Decimal, type_: t.DecimalType) -> Decimal | None:
    """A decimal of a type; None if it has too many digits before the point."""
    return fit_decimal(number, type_)
