"""Fields of generated rows: numbers, texts, names, addresses, times; the same for the same seed and index.

>>> rows = RowGenerator({"id": sequence(1), "name": full_name(), "paid": nullable(integer(1, 9), 0.5)}, seed=7)
>>> rows.map(0).as_dict() == rows.map(0).as_dict()
True
"""

from __future__ import annotations

import bisect
import itertools
import math
import string as letters
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from statistics import NormalDist
from typing import Any, TypeAlias

import mmh3

from firesteel.common.errors import InvalidProgramError
from firesteel.common.types import Row, named_rows
from firesteel.connectors.generators import datagen_words as words
from firesteel.connectors.generators.datagen import GeneratorFunction

__all__ = [
    "Field",
    "RowGenerator",
    "boolean",
    "choice",
    "city",
    "country",
    "email",
    "floating",
    "full_name",
    "hot_keys",
    "integer",
    "ip_address",
    "list_of",
    "mix",
    "normal",
    "nullable",
    "row",
    "sentence",
    "sequence",
    "text",
    "timestamp",
    "url",
    "uuid4",
]

Field: TypeAlias = Callable[[int, int], Any]
"""Makes a value from an index and 64 random bits."""

_ALPHABET = letters.ascii_lowercase + letters.digits
_BITS = 1 << 64


class RowGenerator(GeneratorFunction):
    """Makes rows of named fields. Every field of every index has random bits of its own, drawn from the seed."""

    def __init__(self, fields: Mapping[str, Field], seed: int = 0) -> None:
        if not fields:
            raise InvalidProgramError("RowGenerator: there are no fields.")
        for name, field in fields.items():
            if not callable(field):
                raise InvalidProgramError(
                    f"RowGenerator: the field '{name}' is {field!r}, not a generator.",
                    hint="Use a function of datagen_fields, for instance integer(1, 100).",
                )
        self._names = tuple(fields)
        self._fields = [(_hash(f"{seed}/{name}"), field) for name, field in fields.items()]

    def map(self, value: int) -> Row:
        """The row of an index."""
        random = mix(value)
        return named_rows(self._names, [[field(value, mix(random ^ own)) for own, field in self._fields]])[0]


# -- numbers ----------------------------------------------------------------------------------------


def sequence(start: int = 0, step: int = 1) -> Field:
    """``start``, ``start + step``, …"""
    return lambda index, _bits: start + index * step


def integer(low: int, high: int) -> Field:
    """Whole numbers from ``low`` to ``high``, both among them."""
    span = high - low + 1
    if span < 1:
        raise InvalidProgramError(f"integer({low}, {high}): there is no number from {low} to {high}.")
    return lambda _index, bits: low + bits % span


def floating(low: float, high: float) -> Field:
    """Numbers from ``low`` up to ``high``, all equally likely."""
    return lambda _index, bits: low + (high - low) * (bits / _BITS)


def normal(mean: float, deviation: float) -> Field:
    """Numbers around a mean."""
    inverse = NormalDist(mean, deviation).inv_cdf
    return lambda _index, bits: inverse((bits + 0.5) / _BITS)


def boolean(probability: float = 0.5) -> Field:
    """True with a probability."""
    bound = _check_rate("boolean", probability) * _BITS
    return lambda _index, bits: bits < bound


def hot_keys(count: int, exponent: float = 1.0) -> Field:
    """Numbers below ``count``, of which the first are the most frequent (Zipf's law): skewed keys."""
    if count < 1:
        raise InvalidProgramError(f"hot_keys({count}): there must be at least one key.")
    sums = list(itertools.accumulate(1.0 / math.pow(rank, exponent) for rank in range(1, count + 1)))
    total = sums[-1]
    return lambda _index, bits: min(bisect.bisect_left(sums, bits / _BITS * total), count - 1)


# -- choices and structure --------------------------------------------------------------------------


def choice(values: Sequence[Any], weights: Sequence[float] | None = None) -> Field:
    """One of some values, equally likely or by weight."""
    if not values or (weights is not None and len(weights) != len(values)):
        raise InvalidProgramError("choice: there must be values, and as many weights if there are any.")
    if weights is None:
        return lambda _index, bits: values[bits % len(values)]
    if min(weights) < 0 or not 0 < sum(weights) < math.inf:
        raise InvalidProgramError(
            f"choice: {list(weights)} are not valid weights: they must not be negative, nor all be zero."
        )
    sums = list(itertools.accumulate(weights))
    last = len(values) - 1
    return lambda _index, bits: values[min(bisect.bisect_right(sums, bits / _BITS * sums[-1]), last)]


def nullable(field: Field, rate: float) -> Field:
    """None now and then, else what the field gives."""
    bound = _check_rate("nullable", rate) * _BITS
    return lambda index, bits: None if mix(bits) < bound else field(index, bits)


def list_of(field: Field, most: int, least: int = 0) -> Field:
    """Lists of so many values."""
    if not 0 <= least <= most:
        raise InvalidProgramError(f"list_of: there is no length from {least} to {most}.")
    span = most - least + 1
    return lambda index, bits: [field(index, mix(bits + 1 + number)) for number in range(least + bits % span)]


def row(fields: Mapping[str, Field]) -> Field:
    """Rows within rows."""
    names, parts = tuple(fields), [(_hash(name), field) for name, field in fields.items()]
    return lambda index, bits: named_rows(names, [[field(index, mix(bits ^ own)) for own, field in parts]])[0]


# -- texts ------------------------------------------------------------------------------------------


def text(length: int, least: int | None = None) -> Field:
    """Random letters and digits: ``length`` of them, or from ``least`` to ``length``."""
    span = 1 if least is None else length - least + 1

    def make(_index: int, bits: int) -> str:
        count = length if least is None else least + bits % span
        made: list[str] = []
        while len(made) < count:
            bits = mix(bits)
            rest = bits
            for _ in range(min(12, count - len(made))):
                rest, digit = divmod(rest, len(_ALPHABET))
                made.append(_ALPHABET[digit])
        return "".join(made)

    return make


def uuid4() -> Field:
    """A UUID as text."""
    return lambda _index, bits: str(uuid.UUID(int=bits << 64 | mix(bits), version=4))


def full_name() -> Field:
    """First and last name of a person."""
    return lambda _index, bits: f"{_pick(words.FIRST_NAMES, bits)} {_pick(words.LAST_NAMES, bits >> 32)}"


def email() -> Field:
    """An address at one of the domains that are kept for examples."""

    def make(_index: int, bits: int) -> str:
        first, last = _pick(words.FIRST_NAMES, bits), _pick(words.LAST_NAMES, bits >> 16)
        return f"{first}.{last}{bits >> 40 & 0x3FF}@{_pick(words.DOMAINS, bits >> 56)}".lower()

    return make


def city() -> Field:
    """The name of a city."""
    return lambda _index, bits: _pick(words.CITIES, bits)


def country() -> Field:
    """The two letters of a country."""
    return lambda _index, bits: _pick(words.COUNTRIES, bits)


def sentence(count: int = 8) -> Field:
    """A few words."""

    def make(_index: int, bits: int) -> str:
        made = []
        for _ in range(count):
            made.append(_pick(words.WORDS, bits))
            bits = mix(bits)
        return " ".join(made).capitalize() + "."

    return make


def ip_address() -> Field:
    """An IPv4 address of a private network."""
    return lambda _index, bits: f"10.{bits & 255}.{bits >> 8 & 255}.{bits >> 16 & 255}"


def url() -> Field:
    """The address of a page."""
    return lambda _index, bits: (
        f"https://{_pick(words.DOMAINS, bits)}/{_pick(words.WORDS, bits >> 16)}/{bits >> 40 & 0xFFFF}"
    )


def timestamp(
    start: datetime | None = None,
    step: timedelta = timedelta(seconds=1),
    out_of_orderness: timedelta = timedelta(0),
) -> Field:
    """Times that go on by ``step`` with each index, and are late by up to ``out_of_orderness``."""
    first = start or datetime(2024, 1, 1, tzinfo=timezone.utc)
    most = out_of_orderness / timedelta(microseconds=1)
    return lambda index, bits: first + index * step - timedelta(microseconds=most * (bits / _BITS))


def _pick(values: Sequence[str], bits: int) -> str:
    return values[bits % len(values)]


def _hash(text: str) -> int:
    return mmh3.hash64(text, signed=False)[0]


def mix(value: int) -> int:
    """64 bits that look random, from any number (the finalizer of splitmix64)."""
    value = (value + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return value ^ (value >> 31)


def _check_rate(name: str, rate: float) -> float:
    if not 0 <= rate <= 1:
        raise InvalidProgramError(f"{name}: {rate} is not a probability: use a number from 0 to 1.")
    return rate
