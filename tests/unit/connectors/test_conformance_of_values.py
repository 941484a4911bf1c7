"""The suites find what changes or loses values: formats and sources with one fault each."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.common.time import Instant
from firesteel.connectors.base import IteratorSource
from firesteel.spi.source import Source
from firesteel.testing.conformance import RoundTripConformance, SourceConformance
from firesteel.testing.conformance.sample_values import SCALAR_TYPES, draw_value, extremes, out_of_range, same
from firesteel.types.python import to_single


class Pickles(RoundTripConformance):
    """Keeps all values, but those that ``change`` makes something else of."""

    def round_trip(self, row_type: Any, rows: Sequence[Row]) -> Sequence[Row]:
        values = [self.change(row["value"], [row["value"] for row in rows]) for row in rows]
        return [
            Row(nr=row["nr"], value=pickle.loads(pickle.dumps(value))) for row, value in zip(rows, values, strict=True)
        ]

    def change(self, value: Any, batch: list[Any]) -> Any:
        return value


def test_what_keeps_all_values_conforms():
    report = Pickles().run()
    report.raise_if_failed()
    assert len(report.passed) == 5
    assert not report.skipped


def refuse(value: Any) -> Any:
    raise ValueError("refused")


class Refusing(Pickles):
    def change(self, value: Any, batch: list[Any]) -> Any:
        return refuse(value) if isinstance(value, str) and "\0" in value else value


def single(value: float) -> float:
    return to_single(value) if math.isfinite(value) and 1e-30 < abs(value) < 1e30 else value


FAULTS = {
    "text is stripped": lambda value, _: value.strip() if isinstance(value, str) else value,
    "empty text is None": lambda value, _: None if value == "" else value,
    "a mark is dropped": lambda value, _: value.removeprefix("\ufeff") if isinstance(value, str) else value,
    "whole numbers are floats": lambda value, _: float(value) if isinstance(value, int) and value > 2**53 else value,
    "no negative zero": lambda value, _: 0.0 if isinstance(value, float) and value == 0 else value,
    "NaN is None": lambda value, _: None if isinstance(value, float) and math.isnan(value) else value,
    "milliseconds": lambda value, _: (
        Instant.of_epoch_milli(value.to_epoch_milli()) if isinstance(value, Instant) else value
    ),
    "booleans are numbers": lambda value, _: int(value) if isinstance(value, bool) else value,
    "lists are tuples": lambda value, _: tuple(value) if isinstance(value, list) else value,
    "other values matter": lambda value, batch: str(value) if None in batch and value == 7 else value,
    "large numbers matter": lambda value, batch: single(value) if 1e22 in batch and isinstance(value, float) else value,
    "too large is infinite": lambda value, _: math.inf if value.__class__ is float and value == 1e39 else value,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_value_that_is_changed_is_found(fault):
    class Faulty(Pickles):
        def change(self, value: Any, batch: list[Any]) -> Any:
            return fault(value, batch)

    report = Faulty().run()
    assert report.failed
    assert all("came back as" in str(error) for error in report.failed.values())


def test_a_row_that_is_lost_or_refused_is_found():
    class Losing(Pickles):
        def round_trip(self, row_type: Any, rows: Sequence[Row]) -> Sequence[Row]:
            return super().round_trip(row_type, rows)[:3]

    assert "came back" in str(Losing().run().failed["test_drawn_values_come_back"])
    assert "was refused" in str(Refusing().run("test_extremes_come_back").failed["test_extremes_come_back"])

    class Known(Refusing):
        def may_refuse(self, type_info: Any, value: Any) -> bool:
            return isinstance(value, str) and "\0" in value

    Known().run("test_extremes_come_back", "test_drawn_values_come_back").raise_if_failed()


def test_sample_values_are_of_their_types():
    for type_info in SCALAR_TYPES:
        for value in [*extremes(type_info), *(draw_value(type_info, random.Random(n)) for n in range(50))]:
            assert type_info.validate(value) is None, (type_info, value)
            assert same(value, value)
        for value in out_of_range(type_info):
            assert not any(same(value, other) for other in extremes(type_info))
    assert not same(1, 1.0)
    assert not same(True, 1)
    assert not same(0.0, -0.0)
    assert not same([1], (1,))
    assert not same({"a": 1}, {"a": True})
    assert not same(Row(a=1), Row(b=1))


class ByValue(IteratorSource):
    """Splits of values, in order; a position is the value of the last record."""

    blocking = False

    def __init__(self, values: Sequence[Any], bound: Any = lambda value: value) -> None:
        self.values = sorted(values, key=order)
        self.numbers = {repr(value): number for number, value in enumerate(values)}
        self.bound = bound

    def splits(self) -> Sequence[str]:
        return ["low", "high"]

    def read(self, split: str, position: Any) -> Any:
        middle = order(self.bound(self.values[len(self.values) // 2]))
        for value in self.values:
            if (order(value) >= middle) is (split == "high") and (position is None or order(value) > order(position)):
                yield self.numbers[repr(value)], self.bound(value)


def order(value: Any) -> Any:
    return (True, 0.0) if isinstance(value, float) and math.isnan(value) else (False, value)


class BySingles(SourceConformance):
    """A source that keeps positions of doubles in 32 bits."""

    position_types = (Types.DOUBLE(),)
    bound = staticmethod(lambda value: value)

    def create_source(self) -> Source[Any]:
        raise NotImplementedError

    def expected_records(self) -> Sequence[Any]:
        raise NotImplementedError

    def create_source_by(self, type_info: Any, values: Sequence[Any]) -> Source[Any]:
        return ByValue(values, self.bound)


CHECK = "test_any_value_bounds_splits_and_positions"


def test_a_position_that_is_not_exact_is_found():
    BySingles().run(CHECK).raise_if_failed()

    class Rounded(BySingles):
        bound = staticmethod(single)

    error = str(Rounded().run(CHECK).failed[CHECK])
    assert "whose value is" in error
    assert "times" in error
