"""Aggregation in bundles: when a bundle is flushed, and what is emitted."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import AggregateFunction, ReduceFunction
from firesteel.runtime.model.key_groups import key_group_of, subtask_of
from firesteel.runtime.operators.aggregation.global_aggregate import GlobalAggregateSpec
from firesteel.runtime.operators.aggregation.local_aggregate import LocalAggregateSpec
from firesteel.runtime.operators.aggregation.mini_batch import MiniBatchAggregateSpec
from firesteel.runtime.operators.aggregation.salting import SaltSpec
from firesteel.runtime.state.registry import BACKENDS
from firesteel.testing import Emitted, HarnessSnapshot, OneInputHarness

FOREVER = 1 << 40


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


def key_of(record: Any) -> Any:
    return record[0]


class Values(AggregateFunction):
    """The values of a key, in a list that it changes."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        return accumulator

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a += acc_b
        return acc_a


def local(
    function: Any = add,
    max_records: int | None = None,
    max_keys: int = 1000,
    max_delay: int = FOREVER,
    **settings: Any,
) -> OneInputHarness:
    return OneInputHarness(LocalAggregateSpec(function, max_records, max_keys, max_delay, key_of), **settings)


def mini_batch(
    function: Any = add, max_records: int = 1000, max_delay: int = FOREVER, **settings: Any
) -> OneInputHarness:
    return OneInputHarness(MiniBatchAggregateSpec(function, max_records, max_records, max_delay), [key_of], **settings)


# -- when a bundle is flushed -----------------------------------------------------------------------


def test_a_bundle_is_flushed_when_it_has_enough_records() -> None:
    with local(max_records=3) as harness:
        harness.process_elements([("a", 1), ("b", 2)])
        assert harness.output == []
        harness.process_elements([("a", 3)])
        assert harness.take_output() == [("a", ("a", 4)), ("b", ("b", 2))]
        harness.process_elements([("a", 5), ("a", 6)])
        assert harness.output == []


def test_a_bundle_is_flushed_when_it_has_enough_keys() -> None:
    with local(max_keys=2) as harness:
        harness.process_elements([("a", 1), ("a", 2)])
        assert harness.output == []
        harness.process_elements([("b", 3)])
        assert harness.take_output() == [("a", ("a", 3)), ("b", ("b", 3))]


def test_a_bundle_is_flushed_when_its_first_record_is_old_enough() -> None:
    with local(max_delay=100) as harness:
        harness.process_element(("a", 1))
        harness.advance(99)
        harness.process_element(("a", 2))
        assert harness.output == []
        harness.advance(1)
        assert harness.take_output() == [("a", ("a", 3))]


def test_the_age_of_a_bundle_counts_from_its_own_first_record() -> None:
    with local(max_records=2, max_delay=100) as harness:
        harness.process_elements([("a", 1), ("a", 2)])
        assert harness.take_output() == [("a", ("a", 3))]
        harness.advance(60)
        harness.process_element(("a", 4))
        harness.advance(99)
        assert harness.output == []
        harness.advance(1)
        assert harness.output == [("a", ("a", 4))]


@pytest.mark.parametrize("create", [local, mini_batch])
def test_nothing_that_was_before_a_watermark_or_a_barrier_comes_after_it(
    create: Callable[..., OneInputHarness],
) -> None:
    with create() as harness:
        harness.process_element(("a", 1), 10)
        assert harness.output == []
        harness.process_watermark(20)
        assert len(harness.take_output()) == 1
        harness.process_element(("a", 2), 30)
        harness.snapshot()
        assert len(harness.take_output()) == 1
        harness.process_element(("a", 3), 40)
        harness._chained.process_idle(True)
        assert len(harness.take_output()) == 1
        harness.process_element(("a", 4), 50)
        harness._chained.operator.finish()
        assert len(harness.take_output()) == 1


def test_a_flush_ends_with_the_turn_and_continues_with_the_next_record() -> None:
    with local(max_records=5000, max_keys=50_000) as harness:
        harness.process_elements([(number, 1) for number in range(4999)])
        turn = harness._chained.turn
        turn.is_over = True
        harness.process_element((4999, 1))
        assert 0 < len(harness.output) < 5000
        harness.process_element((5000, 1))
        turn.is_over = False
        harness.process_element((5001, 1))
        assert sorted(harness.take_output()) == [(number, (number, 1)) for number in range(5002)]
        harness.process_element((0, 7))
        assert harness.output == []


def test_a_watermark_waits_for_the_whole_bundle() -> None:
    with local(max_keys=50_000) as harness:
        harness.process_elements([(number, 1) for number in range(5000)])
        harness._chained.turn.is_over = True
        harness.process_watermark(1)
        assert len(harness.output) == 5000


# -- what is emitted --------------------------------------------------------------------------------


def test_a_partial_result_has_the_largest_timestamp_of_its_records() -> None:
    with local() as harness:
        for record, timestamp in [(("a", 1), 10), (("a", 2), 30), (("a", 3), 20), (("b", 4), 5)]:
            harness.process_element(record, timestamp)
        harness.process_watermark(4)
        assert harness.records == [Emitted(("a", ("a", 6)), 30), Emitted(("b", ("b", 4)), 5)]


def test_records_with_and_without_timestamps_are_in_different_bundles() -> None:
    with local() as harness:
        harness.process_element(("a", 1), 10)
        harness.process_element(("a", 2))
        harness.process_element(("a", 3), 20)
        harness.finish()
        assert harness.records == [
            Emitted(("a", ("a", 1)), 10),
            Emitted(("a", ("a", 2)), None),
            Emitted(("a", ("a", 3)), 20),
        ]


def test_the_key_is_that_of_the_records_not_of_the_partial_result() -> None:
    with local(lambda one, other: ("sum", one[1] + other[1])) as harness:
        harness.process_elements([("a", 1), ("a", 2), ("b", 3)])
        harness.finish()
        assert harness.output == [("a", ("sum", 3)), ("b", ("b", 3))]


def test_accumulators_are_merged() -> None:
    with local(Values(), max_records=3) as first:
        first.process_elements([("a", 1), ("b", 2), ("a", 3), ("a", 4)])
        first.finish()
        partials = first.take_output()
    assert partials == [("a", [1, 3]), ("b", [2]), ("a", [4])]
    with OneInputHarness(GlobalAggregateSpec(Values()), [lambda pair: pair[0]]) as second:
        second.process_elements(partials)
        assert second.output == [[1, 3], [2], [1, 3, 4]]
        assert second.state("_aggregate_state", "a") == [1, 3, 4]


def test_equal_keys_are_one_key() -> None:
    with local() as harness:
        harness.process_elements([(1, 1), (1.0, 2), (True, 3)])
        harness.finish()
        assert harness.output == [(1, (1, 6))]


def test_records_of_keys_that_cannot_be_hashed_are_sent_as_they_are() -> None:
    with local(max_records=3) as harness:
        harness.process_elements([([1], 1), ([1], 2), ("a", 3)])
        assert harness.output == [([1], ([1], 1)), ([1], ([1], 2)), ("a", ("a", 3))]


class Keeping(ReduceFunction):
    """Returns the same object each time, and changes it later."""

    def __init__(self) -> None:
        self.kept = {"key": "a", "sum": 0}

    def reduce(self, value1: Any, value2: Any) -> Any:
        self.kept["sum"] = value1["sum"] + value2["sum"]
        return self.kept


@pytest.mark.parametrize("reuse", [False, True])
def test_a_function_may_keep_what_it_returns_unless_objects_are_reused(reuse: bool) -> None:
    settings = Configuration.from_dict({"pipeline.object-reuse": str(reuse).lower()})
    spec = LocalAggregateSpec(Keeping(), 2, 1000, FOREVER, lambda record: record["key"])
    with OneInputHarness(spec, configuration=settings) as harness:
        for number in range(4):
            harness.process_element({"key": "a", "sum": number})
        assert [partial["sum"] for _, partial in harness.output] == ([5, 5] if reuse else [1, 5])


# -- errors -----------------------------------------------------------------------------------------


def _nothing(one: Any, other: Any) -> Any:
    return None


class Forgetful(Values):
    def add(self, value: Any, accumulator: list[Any]) -> Any:
        accumulator.append(value)


@pytest.mark.parametrize("create", [local, mini_batch])
@pytest.mark.parametrize("function", [_nothing, Forgetful()])
def test_a_function_that_returns_none_is_refused(create: Callable[..., OneInputHarness], function: Any) -> None:
    with create(function) as harness, pytest.raises(InvalidProgramError, match="returned None"):
        harness.process_elements([("a", 1), ("a", 2)])


# -- mini-batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_mini_batch_gives_one_result_per_key_and_keeps_it(backend: str) -> None:
    with mini_batch(max_records=4, backend=backend) as harness:
        harness.process_elements([("a", 1), ("b", 2), ("a", 3), ("a", 4)])
        assert harness.take_output() == [("a", 8), ("b", 2)]
        harness.process_elements([("a", 5), ("b", 6)])
        snapshot = harness.snapshot()
        assert harness.take_output() == [("a", 13), ("b", 8)]
    with mini_batch(max_records=1, backend=backend).initialize_state(snapshot) as harness:
        harness.process_element(("b", 1))
        assert harness.output == [("b", 9)]


# -- salts ------------------------------------------------------------------------------------------


def test_the_records_of_a_key_get_all_salts_in_turn() -> None:
    with OneInputHarness(SaltSpec(key_of, 3)) as harness:
        harness.process_elements([("a", number) for number in range(6)])
        triples = harness.output
    first = triples[0][1]
    assert triples == [("a", first + number % 3, ("a", number)) for number in range(6)]


def test_subtasks_begin_with_different_salts() -> None:
    firsts = []
    for subtask in range(2):
        with OneInputHarness(SaltSpec(key_of, 2), subtask=subtask, parallelism=2) as harness:
            harness.process_element(("a", 1))
            firsts.append(harness.output[0][1])
    assert firsts[1] == firsts[0] + 1


def test_salted_records_are_aggregated_by_their_key() -> None:
    spec = LocalAggregateSpec(add, 3, 1000, FOREVER, None)
    with OneInputHarness(spec, [lambda triple: triple[1]]) as harness:
        harness.process_elements([("a", 0, ("a", 1)), ("b", 7, ("b", 2)), ("a", 1, ("a", 3))])
        assert harness.output == [("a", ("a", 4)), ("b", ("b", 2))]


# -- against a plain aggregation --------------------------------------------------------------------


class Stages:
    """Local subtasks, an exchange by key and global subtasks, of which a checkpoint is taken and restored."""

    def __init__(self, function: Any, draw: random.Random, snapshot: HarnessSnapshot | None):
        self._draw = draw
        self._locals = [
            local(function, draw.choice([1, 2, 7, None]), draw.choice([1, 3, 1000]), draw.choice([1, 10, FOREVER]))
            for _ in range(draw.randint(1, 3))
        ]
        count = draw.randint(1, 3)
        self._globals = [
            OneInputHarness(
                GlobalAggregateSpec(function),
                [lambda pair: pair[0]],
                parallelism=count,
                subtask=subtask,
                backend=draw.choice(["hashmap", "hashmap", "hashmap", "rocksdb"]),
            )
            .initialize_state(snapshot)
            .open()
            for subtask in range(count)
        ]
        self.results: dict[Any, Any] = {}

    def process(self, record: Any) -> None:
        harness = self._draw.choice(self._locals)
        harness.process_element(record)
        if self._draw.random() < 0.1:
            harness.advance(self._draw.randint(1, 20))
        self._exchange()

    def snapshot(self) -> HarnessSnapshot:
        for harness in self._locals:
            harness.snapshot()
        self._exchange()
        return HarnessSnapshot.combine(*(harness.snapshot() for harness in self._globals))

    def finish(self) -> None:
        for harness in self._locals:
            harness.finish()
        self._exchange()

    def close(self) -> None:
        for harness in (*self._locals, *self._globals):
            harness.close()

    def _exchange(self) -> None:
        for harness in self._locals:
            for key, partial in harness.take_output():
                subtask = subtask_of(key_group_of(key, 128), 128, len(self._globals))
                target = self._globals[subtask]
                target.process_element((key, partial))
                (self.results[key],) = target.take_output()


@pytest.mark.parametrize("_number", range(12))
@pytest.mark.parametrize("kind", ["reduce", "aggregate"])
def test_the_last_results_are_those_of_a_plain_aggregation(kind: str, _number: int) -> None:
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    function = add if kind == "reduce" else Values()
    records = [(f"key {min(draw.randint(0, 9), 4)}", number) for number in range(draw.randint(0, 120))]
    stages = Stages(function, draw, None)
    checkpoint: tuple[HarnessSnapshot | None, int] = None, 0
    results: dict[Any, Any] = {}
    position = failures = 0
    try:
        while position < len(records):
            stages.process(records[position])
            position += 1
            if draw.random() < 0.05:
                checkpoint = stages.snapshot(), position
            elif draw.random() < 0.02 and failures < 3:
                failures += 1
                results.update(stages.results)
                stages.close()
                stages, position = Stages(function, draw, checkpoint[0]), checkpoint[1]
        stages.finish()
        results.update(stages.results)
    finally:
        stages.close()
    plain: dict[Any, list[int]] = {}
    for key, value in records:
        plain.setdefault(key, []).append(value)
    assert _comparable(results.values(), kind) == _comparable(
        [(key, sum(values)) for key, values in plain.items()] if kind == "reduce" else list(plain.values()), kind
    )


def _comparable(results: Any, kind: str) -> Sequence[Any]:
    """Values from several subtasks come in any order."""
    return sorted(results if kind == "reduce" else (sorted(values) for values in results))
