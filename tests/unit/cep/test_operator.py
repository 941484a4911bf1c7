"""The operator: waiting events, timers, state in both backends, side outputs, errors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.cep import Pattern, PatternProcessFunction, TimedOutPartialMatchHandler, WithinType
from firesteel.cep.functions import select_adapter
from firesteel.cep.nfa.nfa import PartialMatchLimitError
from firesteel.cep.operator import PARTIAL_MATCHES, WAITING_EVENTS, CepOperator, CepSpec
from firesteel.common.errors import FiresteelError
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.testing.operator_context import FakeClock, FakeOperatorContext
from tests.support.cep_oracle.operator_run import run_case
from tests.support.cep_oracle.record import is_same, read_recorded
from tests.support.state.keyed_backends import Workbench

BACKENDS = ("hashmap", "rocksdb")
TIMED_OUT = OutputTag("timed out")


class Texts(PatternProcessFunction, TimedOutPartialMatchHandler):
    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
        yield "".join(event[1] for events in match.values() for event in events)

    def process_timed_out_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
        yield TIMED_OUT, match["a"][0][1]


class Bench:
    """An operator on records (key, text, timestamp)."""

    def __init__(self, spec: CepSpec, backend: Any = None):
        self.context = FakeOperatorContext(lambda record: record[0], FakeClock(1000), backend)
        self.operator = CepOperator(spec)
        self.operator.open(self.context)

    def add(self, *records: tuple[str, str, int]) -> None:
        self.operator.process_batch(list(records), [record[2] for record in records])

    def advance(self, watermark: int) -> list[str]:
        """What has been emitted up to a watermark."""
        self.operator.process_watermark(watermark)
        emitted, self.context.output = self.context.output, []
        return [value for value, _ in emitted]

    def keys(self, state: str) -> list[Any]:
        self.snapshot()
        assert self.context.backend is not None
        return sorted(self.context.backend.keys(state))

    def snapshot(self) -> None:
        """Has the operator put everything into state."""
        self.operator.snapshot_state(1, self.context.operator_state)


def is_(text: str) -> Any:
    return lambda record: record[1][0] == text


def a_then_b() -> Pattern:
    return Pattern.begin("a").where(is_("a")).followed_by("b").where(is_("b")).within(10)


@pytest.fixture(params=BACKENDS)
def workbench(request: pytest.FixtureRequest) -> Iterator[Workbench]:
    bench = Workbench(request.param, 8, FakeClock(1000))
    yield bench
    bench.close()


def test_events_wait_for_the_watermark_and_are_sorted(workbench: Workbench) -> None:
    bench = Bench(CepSpec(a_then_b(), Texts()), workbench.backend())
    bench.add(("k", "b", 5), ("k", "a", 3), ("l", "b", 3), ("k", "b", 9))
    assert bench.advance(4) == []
    assert bench.keys(WAITING_EVENTS) == ["k"]
    assert bench.keys(PARTIAL_MATCHES) == ["k"]
    assert bench.advance(8) == ["ab"]
    assert bench.keys(PARTIAL_MATCHES) == []
    assert bench.advance(100) == []
    assert bench.keys(WAITING_EVENTS) == []


def test_state_is_restored(workbench: Workbench) -> None:
    backend = workbench.backend()
    bench = Bench(CepSpec(a_then_b(), Texts()), backend)
    bench.add(("k", "a", 3), ("l", "a", 4), ("l", "b", 8), ("m", "x", 2))
    assert bench.advance(5) == []
    bench.snapshot()
    restored = Bench(CepSpec(a_then_b(), Texts()), workbench.restore([workbench.snapshot(backend)]))
    restored.add(("k", "b", 7))
    assert sorted(restored.advance(8)) == ["ab", "ab"]
    assert restored.keys(PARTIAL_MATCHES) == restored.keys(WAITING_EVENTS) == []


PATTERNS = {
    "within": a_then_b,
    "between neighbours": lambda: (
        Pattern.begin("a").where(is_("a")).followed_by("b").where(is_("b")).within(4, WithinType.PREVIOUS_AND_CURRENT)
    ),
    "absent": lambda: Pattern.begin("a").where(is_("a")).not_followed_by("b").where(is_("b")).within(6),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("compares", [False, True])
def test_snapshots_and_ends_of_turns_change_nothing(pattern: str, compares: bool) -> None:
    """Events that a snapshot has put into state come before later ones of the same timestamp."""

    def results(seed: int, backend: Any, *, snapshots: bool, short_turns: bool) -> list[Any]:
        rng, between = random.Random(seed), random.Random(seed)
        spec = CepSpec(PATTERNS[pattern](), Texts(), comparator=_by_text if compares else None)
        bench = Bench(spec, backend)
        bench.context.turn.is_over = short_turns
        emitted: list[Any] = []
        for watermark in range(0, 40, 4):
            for _ in range(3):
                for _ in range(rng.randrange(4)):
                    time = watermark + rng.randrange(-3, 9)
                    bench.add((rng.choice("kl"), rng.choice("abc") + str(rng.randrange(100)), time))
                if snapshots and between.random() < 0.5:
                    bench.snapshot()
            emitted += sorted(bench.advance(watermark))
        emitted += sorted(bench.advance(1000))
        assert bench.keys(WAITING_EVENTS) == []
        return [emitted, sorted(value for value, _ in bench.context.side_output.get(TIMED_OUT, ()))]

    for seed in range(30):
        plain = results(seed, None, snapshots=False, short_turns=False)
        assert results(seed, None, snapshots=True, short_turns=False) == plain, seed
        assert results(seed, None, snapshots=True, short_turns=True) == plain, seed
    bench = Workbench("rocksdb", 8, FakeClock(1000))
    try:
        assert results(0, bench.backend(), snapshots=False, short_turns=False) == results(
            0, None, snapshots=True, short_turns=True
        )
    finally:
        bench.close()


def _by_text(one: Any, other: Any) -> int:
    return int(one[1] > other[1]) - int(one[1] < other[1])


def test_nothing_is_left_of_a_key_whose_time_has_passed(workbench: Workbench) -> None:
    bench = Bench(CepSpec(a_then_b(), Texts()), workbench.backend())
    for number in range(50):
        bench.add((f"key {number % 5}", "a", 10 + number))
        assert bench.advance(9 + number) == []
        assert len(bench.keys(PARTIAL_MATCHES)) <= 5
    bench.advance(1000)
    assert bench.keys(PARTIAL_MATCHES) == bench.keys(WAITING_EVENTS) == []
    assert len(bench.context.side_output[TIMED_OUT]) == 50
    assert bench.context.timer_services["_cep_timers"].event.peek() is None


def test_recorded_cases_with_rocksdb() -> None:
    for case in read_recorded()[:4000:80]:
        bench = Workbench("rocksdb", 8, FakeClock(0))
        try:
            result = run_case(case, bench.backend())
        finally:
            bench.close()
        assert is_same(result, case["expected"]), case


def test_a_function_may_change_the_events_of_a_match() -> None:
    def change(match: dict[str, list[Any]]) -> int:
        match["a"][0].append("changed")
        return len(match["a"][0])

    pattern = Pattern.begin("a").where(is_("a")).followed_by_any("b").where(is_("b"))
    context = FakeOperatorContext(lambda record: record[0])
    operator = CepOperator(CepSpec(pattern, select_adapter(change)))
    operator.open(context)
    operator.process_batch([["k", "a"], ["k", "b"], ["k", "b"]], [1, 2, 3])
    operator.process_watermark(9)
    assert context.output == [(3, 2), (3, 3)]


def test_results_in_processing_time_have_no_timestamp() -> None:
    bench = Bench(CepSpec(a_then_b(), Texts(), is_event_time=False))
    bench.add(("k", "a", 0), ("k", "b", 0))
    assert bench.context.output == [("ab", MIN_TIMESTAMP)]
    bench.add(("k", "a", 0))
    bench.context.clock.advance(20)
    assert bench.context.side_output[TIMED_OUT] == [("a", MIN_TIMESTAMP)]
    assert bench.keys(PARTIAL_MATCHES) == []


def test_a_comparator_orders_events_of_one_timestamp() -> None:
    def compare(one: Any, other: Any) -> int:
        return (one[1] > other[1]) - (one[1] < other[1])

    bench = Bench(CepSpec(a_then_b(), Texts(), comparator=compare))
    bench.add(("k", "b", 3), ("k", "a", 3))
    assert bench.advance(3) == ["ab"]
    bench = Bench(CepSpec(a_then_b(), Texts()))
    bench.add(("k", "b", 3), ("k", "a", 3))
    assert bench.advance(3) == []


def test_the_error_of_the_limit_names_pattern_and_key() -> None:
    bench = Bench(CepSpec(a_then_b(), Texts(), max_partial_matches=3))
    bench.add(*(("the key", "a", number) for number in range(1, 5)))
    with pytest.raises(
        PartialMatchLimitError, match=r"Key 'the key': There are 4 partial matches of the pattern a .*b"
    ):
        bench.advance(5)


def test_a_record_without_timestamp_is_refused() -> None:
    bench = Bench(CepSpec(a_then_b(), Texts()))
    with pytest.raises(FiresteelError, match="without a timestamp"):
        bench.operator.process_batch([("k", "a")], None)


def test_timed_out_matches_go_to_side_outputs_only() -> None:
    class Wrong(Texts):
        def process_timed_out_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
            yield "no tag"

    bench = Bench(CepSpec(a_then_b(), Wrong()))
    bench.add(("k", "a", 1))
    with pytest.raises(FiresteelError, match="side outputs only"):
        bench.advance(50)


def test_a_match_function_that_returns_no_iterable_is_refused() -> None:
    class Wrong(PatternProcessFunction):
        def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Any:
            return 3

    bench = Bench(CepSpec(Pattern.begin("a"), Wrong()))
    bench.add(("k", "a", 1))
    with pytest.raises(FiresteelError, match="A match function must return an iterable"):
        bench.advance(50)
