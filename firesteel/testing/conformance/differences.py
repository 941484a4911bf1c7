"""Differences between the actual and the expected records of a connector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["difference", "missing_or_foreign"]


def difference(expected: Sequence[Any], found: Sequence[Any]) -> str | None:
    """How two bags of records differ, in words; None if they do not."""
    wanted, got = Counter(map(_key, expected)), Counter(map(_key, found))
    lost, extra = wanted - got, got - wanted
    parts = []
    if lost:
        parts.append(f"{lost.total()} lost, such as {_sample(lost)}")
    twice = {key: count for key, count in extra.items() if key in wanted}
    if twice:
        parts.append(f"{sum(twice.values())} too often, such as {_sample(twice)}")
    foreign = {key: count for key, count in extra.items() if key not in wanted}
    if foreign:
        parts.append(f"{sum(foreign.values())} never given, such as {_sample(foreign)}")
    return "; ".join(parts) or None


def _key(record: Any) -> Any:
    try:
        hash(record)
    except TypeError:
        return repr(record)
    return record


def _sample(found: Mapping[Any, int]) -> str:
    return ", ".join(f"{key!r}" for key in list(found)[:3])


def missing_or_foreign(expected: Sequence[Any], found: Sequence[Any]) -> str | None:
    """How they differ if a record may come more than once; None if they do not."""
    once = list({_key(record): record for record in found}.values())
    return difference(list({_key(record): record for record in expected}.values()), once)
