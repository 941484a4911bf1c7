"""Every kind of key that a stream can have, made from the integer k of a record.

Where Python has several equal objects for one key (``1 == 1.0 == True``, rows with their fields in another order, one
instant in two time zones), the record's v decides which of them the selector returns.
"""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from firesteel.common.types import Row
from firesteel.datastream.functions import KeySelector
from firesteel.testing.programs.records import fields
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["KEYS", "KEY_KINDS", "KeyOf", "Point", "k_of"]

KEYS = 16
"""k is below this number."""

_EPOCH = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
_ZONES = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (0, 2, -7)]
_WIDE = 2**70
_DAY = datetime.timedelta(days=1)


class Color(enum.Enum):
    """An enumeration of k."""

    C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, C14, C15 = range(16)


class Number(enum.IntEnum):
    """Members that are equal to their numbers."""

    N0, N1, N2, N3, N4, N5, N6, N7, N8, N9, N10, N11, N12, N13, N14, N15 = range(16)


@dataclass(frozen=True)
class Point:
    """A frozen dataclass as key."""

    x: int
    y: str


def _number(k: int, v: int) -> Any:
    forms: list[Any] = [k, float(k), Decimal(k), Fraction(k)]
    if k < 2:
        forms.append(bool(k))
    if k == 0:
        forms.append(-0.0)
    return forms[v % len(forms)]


def _row(k: int, v: int) -> Row:
    name = f"n{k}"
    return Row(id=k, name=name) if v % 2 else Row(name=name, id=k)


def _instant(k: int, v: int) -> datetime.datetime:
    return (_EPOCH + k * _DAY).astimezone(_ZONES[v % len(_ZONES)])


_Make = Callable[[int, int], Any]
_Invert = Callable[[Any], int]
_KINDS: dict[str, tuple[_Make, _Invert]] = {
    "int": (lambda k, _v: k, int),
    "negative": (lambda k, _v: -k - 1, lambda key: -key - 1),
    "wide": (lambda k, _v: _WIDE + k, lambda key: key - _WIDE),
    "float": (lambda k, _v: k + 0.5, lambda key: int(key - 0.5)),
    "number": (_number, int),
    "str": (lambda k, _v: f"key-{k}", lambda key: int(key[4:])),
    "bytes": (lambda k, _v: b"\x00%d" % k, lambda key: int(key[1:])),
    "tuple": (lambda k, _v: ("a", k), lambda key: int(key[1])),
    "tuple_none": (lambda k, _v: (None, k, ""), lambda key: int(key[1])),
    "tuple_number": (lambda k, v: (_number(k, v), "x"), lambda key: int(key[0])),
    "nested": (lambda k, v: ((k, _row(k, v)), "x"), lambda key: int(key[0][0])),
    "row": (_row, lambda key: int(key["id"])),
    "plain_row": (lambda k, _v: Row("x", k), lambda key: int(key[1])),
    "uuid": (lambda k, _v: uuid.UUID(int=k), lambda key: int(key.int)),
    "decimal": (lambda k, _v: Decimal(k).scaleb(-1), lambda key: int(key.scaleb(1))),
    "date": (lambda k, _v: (_EPOCH + k * _DAY).date(), lambda key: (key - _EPOCH.date()).days),
    "instant": (_instant, lambda key: int((key - _EPOCH) / _DAY)),
    "time": (lambda k, _v: datetime.time(k, 30), lambda key: int(key.hour)),
    "interval": (lambda k, _v: k * _DAY, lambda key: int(key.days)),
    "enum": (lambda k, _v: Color(k), lambda key: int(key.value)),
    "int_enum": (lambda k, v: Number(k) if v % 2 else k, int),
    "frozenset": (lambda k, _v: frozenset(("x", k)), lambda key: next(x for x in key if x != "x")),
    "dataclass": (lambda k, _v: Point(k, "p"), lambda key: int(key.x)),
}
KEY_KINDS = tuple(_KINDS)


def k_of(kind: str, key: Any) -> int:
    """Returns the k that a key was made from.

    >>> {k_of(kind, KeyOf(kind).get_key((3, v, 0))) for kind in KEY_KINDS for v in range(6)}
    {3}
    """
    return _KINDS[kind][1](key)


@dataclass
class KeyOf(KeySelector):
    """Selects a key of some kind."""

    kind: str
    trip: Trip | None = None

    def get_key(self, value: Any) -> Any:
        """Returns the key made from k."""
        step(self.trip)
        k, v, _, _ = fields(value)
        return _KINDS[self.kind][0](k, v)
