"""Durations and instants: Duration, Instant and Time."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import total_ordering

__all__ = ["Duration", "Instant", "Time", "to_millis"]

_NANOS = {
    "d": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "min": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "µs": 10**3,
    "ns": 1,
}

_LABELS = {
    "d": ("d", "day", "days"),
    "h": ("h", "hour", "hours"),
    "min": ("min", "m", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "milli", "millis", "millisecond", "milliseconds"),
    # The micro sign and the Greek letter mu look alike; keyboards give one or the other.
    "µs": ("µs", "\u03bcs", "us", "micro", "micros", "microsecond", "microseconds"),
    "ns": ("ns", "nano", "nanos", "nanosecond", "nanoseconds"),
}
_UNIT_OF_LABEL = {label: unit for unit, labels in _LABELS.items() for label in labels}

_AMOUNT = re.compile(r"(\d+)\s*(.*)", re.ASCII | re.DOTALL)
_ISO = re.compile(
    r"(?P<sign>[-+])?P(?:(?P<d>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<h>[-+]?\d+)H)?(?:(?P<min>[-+]?\d+)M)?(?:(?P<s>[-+]?\d+)(?:\.(?P<frac>\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


@total_ordering
class Duration:
    """An amount of time, exact to the nanosecond."""

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int):
        if not isinstance(nanos, int):
            raise TypeError("A Duration counts whole units: use a smaller one instead of a fraction")
        self._nanos = nanos

    @staticmethod
    def of_days(days: int) -> Duration:
        """That many days of 24 hours."""
        return Duration(days * _NANOS["d"])

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """That many hours."""
        return Duration(hours * _NANOS["h"])

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """That many milliseconds."""
        return Duration(millis * _NANOS["ms"])

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """That many minutes."""
        return Duration(minutes * _NANOS["min"])

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """That many nanoseconds."""
        return Duration(nanos)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """That many seconds."""
        return Duration(seconds * _NANOS["s"])

    @staticmethod
    def of_timedelta(delta: timedelta) -> Duration:
        """The same amount as a ``datetime.timedelta``."""
        return Duration(delta // timedelta(microseconds=1) * _NANOS["µs"])

    @staticmethod
    def parse(text: str) -> Duration:
        """Reads a duration as Flink's configuration writes it.

        A whole number with a unit (``200 ms``, ``5min``), a number alone (milliseconds), or ISO-8601.

        >>> Duration.parse("5 min") == Duration.of_minutes(5) == Duration.parse("PT5M")
        True
        """
        trimmed = text.strip()
        if match := _AMOUNT.fullmatch(trimmed):
            label = match[2].strip().lower()
            unit = _UNIT_OF_LABEL.get(label) if label else "ms"
            if unit is None:
                units = ", ".join(_NANOS)
                raise ValueError(f"{text!r} is not a duration: {label!r} is not one of the units {units}")
            return Duration(int(match[1]) * _NANOS[unit])
        if (match := _ISO.fullmatch(trimmed)) and any(match[unit] for unit in ("d", "h", "min", "s")):
            return Duration(_iso_nanos(match))
        raise ValueError(f"{text!r} is not a duration: write an integer and a unit, such as '200 ms' or '5 min'")

    def to_nanos(self) -> int:
        """The amount in nanoseconds."""
        return self._nanos

    def to_millis(self) -> int:
        """The amount in whole milliseconds, rounded down."""
        return self._nanos // _NANOS["ms"]

    def to_seconds(self) -> float:
        """The amount in seconds with fractions, as ``time.monotonic()`` counts."""
        return self._nanos / _NANOS["s"]

    def to_timedelta(self) -> timedelta:
        """The same amount as a ``datetime.timedelta``, to the microsecond."""
        return timedelta(microseconds=self._nanos // _NANOS["µs"])

    def format(self) -> str:
        """The amount in the largest unit that divides it, as a configuration has it: ``5 min``."""
        if not self._nanos:
            return "0 ms"
        unit = next(unit for unit, nanos in _NANOS.items() if self._nanos % nanos == 0)
        return f"{self._nanos // _NANOS[unit]} {unit}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self._nanos == other._nanos

    def __lt__(self, other: Duration) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self._nanos < other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __str__(self) -> str:
        if not self._nanos:
            return "PT0S"
        sign = "-" if self._nanos < 0 else ""
        seconds, nanos = divmod(abs(self._nanos), 10**9)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        text = f"PT{sign}{hours}H" if hours else "PT"
        text += f"{sign}{minutes}M" if minutes else ""
        fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
        return text + (f"{sign}{seconds}{fraction}S" if seconds or nanos else "")

    def __repr__(self) -> str:
        return f"Duration({self.format()!r})"


def _iso_nanos(match: re.Match[str]) -> int:
    nanos = sum(int(match[unit]) * _NANOS[unit] for unit in ("d", "h", "min", "s") if match[unit])
    if match["frac"]:
        fraction = int(match["frac"].ljust(9, "0"))
        nanos += -fraction if match["s"].startswith("-") else fraction
    return -nanos if match["sign"] == "-" else nanos


@total_ordering
class Instant:
    """A point in time: seconds since 1970-01-01T00:00Z, and nanoseconds that count forward from there."""

    __slots__ = ("nanos", "seconds")

    def __init__(self, seconds: int, nanos: int):
        self.seconds = seconds
        self.nanos = nanos

    def to_epoch_milli(self) -> int:
        """Milliseconds since 1970, rounded down."""
        return self.seconds * 1000 + self.nanos // 1_000_000

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The point that many milliseconds after 1970 (before, if negative)."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * 1_000_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and (self.seconds, self.nanos) == (other.seconds, other.nanos)

    def __lt__(self, other: Instant) -> bool:
        if not isinstance(other, Instant):
            return NotImplemented
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


@total_ordering
class Time:
    """An amount of time in milliseconds: sizes, slides and gaps of windows."""

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int):
        if not isinstance(milliseconds, int):
            raise TypeError("A Time counts whole units: use a smaller one instead of a fraction")
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """The amount in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """That many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """That many seconds."""
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """That many minutes."""
        return Time(minutes * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """That many hours."""
        return Time(hours * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """That many days of 24 hours."""
        return Time(days * 86_400_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __lt__(self, other: Time) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        return self._milliseconds < other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time({self._milliseconds})"


def to_millis(amount: Duration | Time | timedelta | int) -> int:
    """Converts a duration of any supported type to milliseconds; an int is in milliseconds."""
    if isinstance(amount, Duration):
        return amount.to_millis()
    if isinstance(amount, Time):
        return amount.to_milliseconds()
    if isinstance(amount, timedelta):
        return amount // timedelta(milliseconds=1)
    if isinstance(amount, int) and not isinstance(amount, bool):
        return amount
    raise TypeError(f"Expected a Duration, Time, timedelta or milliseconds, got {type(amount).__name__}: {amount!r}")
