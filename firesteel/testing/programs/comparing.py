"""Compares the results of a run with those of the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.testing.programs.program import Program
from firesteel.testing.programs.records import canonical

__all__ = ["compare"]

_SHOWN = 5


def compare(
    program: Program, expected: Mapping[int, list[Any]], found: Mapping[int, list[Any]], *, partial: bool = False
) -> list[str]:
    """Returns the differences, in words; an empty list if there are none.

    With ``partial``, more may have been found than was expected.
    """
    types = program.types()
    differences: list[str] = []
    for sink in program.sinks:
        kind = types[sink.inputs[0]].at(sink.parallelism)
        want = expected[sink.id]
        have = [canonical(record) for record in found.get(sink.id, [])]
        if not kind.settled:
            differences += _compare_sums(sink.id, want, have, partial=partial)
        else:
            ordered = kind.ordered and getattr(sink, "how", "") == "store"
            differences += _compare_records(sink.id, want, have, ordered=ordered, partial=partial)
    return differences


def _compare_records(sink: int, want: list[Any], have: list[Any], *, ordered: bool, partial: bool) -> list[str]:
    missing = Counter(want) - Counter(have)
    surplus = Counter(have) - Counter(want)
    differences = []
    if missing:
        differences.append(f"sink {sink}: {missing.total()} of {len(want)} missing: {_some(missing)}")
    if surplus and not partial:
        differences.append(f"sink {sink}: {surplus.total()} too many: {_some(surplus)}")
    if ordered and not differences and not partial:
        in_order, in_run = _by_key(want), _by_key(have)
        for k in in_order:
            if in_order[k] != in_run[k]:
                at = next(i for i, pair in enumerate(zip(in_order[k], in_run[k], strict=True)) if pair[0] != pair[1])
                differences.append(
                    f"sink {sink}: k={k} comes in another order: {in_order[k][at : at + 3]} expected at {at}, "
                    f"found {in_run[k][at : at + 3]}"
                )
                break
    return differences


def _compare_sums(sink: int, want: list[Any], have: list[Any], *, partial: bool) -> list[str]:
    expected, found = _sums(want), _sums(have)
    if expected == found or partial:
        return []
    wrong = {k: (v, found.get(k, 0)) for k, v in expected.items() if v != found.get(k, 0)}
    return [f"sink {sink}: sums of v by k, expected and found: {wrong or found}"]


def _by_key(records: Iterable[Any]) -> dict[int, list[Any]]:
    by_key: dict[int, list[Any]] = {}
    for record in records:
        by_key.setdefault(record[0], []).append(record)
    return by_key


def _sums(records: Iterable[Any]) -> dict[int, int]:
    sums: Counter[int] = Counter()
    for record in records:
        sums[record[0]] += record[1]
    return {k: v for k, v in sums.items() if v}


def _some(records: Counter[Any]) -> str:
    shown = ", ".join(map(repr, list(records.elements())[:_SHOWN]))
    return shown + (", …" if records.total() > _SHOWN else "")
