"""Sources of one slot take turns, also if each of them always has data."""

from __future__ import annotations

from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.connectors.generators.number_sequence import NumberSequenceSource
from firesteel.testing import collect, test_environment


def test_a_source_that_always_has_data_does_not_keep_another_from_its_own() -> None:
    env = test_environment(1)
    streams: list[Any] = []
    for name in ("a", "b", "c"):
        numbers = env.from_source(NumberSequenceSource(0, 1 << 50), WatermarkStrategy.no_watermarks(), name)
        streams.append(numbers.map(lambda _number, name=name: name))
    first = collect(streams[0].union(*streams[1:]), limit=500_000)
    assert {first.count(name) > 5_000 for name in ("a", "b", "c")} == {True}
