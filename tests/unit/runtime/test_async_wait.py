"""The operator of async I/O, with an event loop in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.common import Time
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import AsyncFunction, AsyncRetryStrategy
from firesteel.testing import AsyncFunctionHarness, HarnessSnapshot

Harnesses = Callable[..., AsyncFunctionHarness]


@pytest.fixture
def harness() -> Iterator[Harnesses]:
    """Makes harnesses and closes them."""
    made: list[AsyncFunctionHarness] = []

    def make(function: AsyncFunction[Any, Any], **options: Any) -> AsyncFunctionHarness:
        made.append(AsyncFunctionHarness(function, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Sleep(AsyncFunction[Any, Any]):
    """A record ``(name, milliseconds)`` has its name as its result after that time."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.cancelled: list[Any] = []

    async def async_invoke(self, value: Any) -> list[Any]:
        self.started.append(value[0])
        try:
            await asyncio.sleep(value[1] / 1000)
        except asyncio.CancelledError:
            self.cancelled.append(value[0])
            raise
        return [value[0]]


class Failing(AsyncFunction[Any, Any]):
    """Raises so many times, then has so many empty results, then one result; each call takes 10 ms."""

    def __init__(self, errors: int, empty: int = 0):
        self.errors, self.empty = errors, empty
        self.times: list[int] = []

    async def async_invoke(self, value: Any) -> list[Any]:
        self.times.append(round(asyncio.get_running_loop().time() * 1000))
        await asyncio.sleep(0.01)
        if len(self.times) <= self.errors:
            raise ConnectionError(f"attempt {len(self.times)}")
        return [] if len(self.times) <= self.errors + self.empty else [value]

    def timeout(self, value: Any) -> list[Any]:
        return ["timed out"]


def any_error(_error: BaseException) -> bool:
    return True


def is_empty(result: list[Any]) -> bool:
    return not result


# -- order --------------------------------------------------------------------------------------------------


def test_ordered_results_come_in_the_order_of_the_records(harness: Harnesses) -> None:
    calls = harness(Sleep())
    calls.process_elements([("a", 30), ("b", 10), ("c", 20)])
    calls.advance(20)
    assert calls.output == []
    calls.advance(10)
    assert calls.output == ["a", "b", "c"]


def test_unordered_results_come_as_they_are_ready(harness: Harnesses) -> None:
    calls = harness(Sleep(), is_ordered=False)
    calls.process_elements([("a", 30), ("b", 10), ("c", 20)])
    calls.advance(30)
    assert calls.output == ["b", "c", "a"]


@pytest.mark.parametrize("is_ordered", [True, False])
def test_no_result_crosses_a_watermark(harness: Harnesses, is_ordered: bool) -> None:
    calls = harness(Sleep(), is_ordered=is_ordered)
    calls.process_element(("a", 30), 1)
    calls.process_watermark(5)
    calls.process_watermark(6)
    calls.process_element(("b", 10), 7)
    calls.advance(20)
    assert (calls.records, calls.watermarks) == ([], [])
    calls.advance(10)
    assert calls.records == [("a", 1), ("b", 7)]
    assert calls.watermarks == [6]


def test_a_watermark_with_nothing_in_flight_goes_on_at_once(harness: Harnesses) -> None:
    calls = harness(Sleep())
    calls.process_watermark(5)
    assert calls.watermarks == [5]


def test_records_with_and_without_timestamps(harness: Harnesses) -> None:
    calls = harness(Sleep())
    calls.process_element(("a", 10), 1)
    calls.process_element(("b", 10))
    calls.process_element(("c", 10), 3)
    calls.advance(10)
    assert calls.records == [("a", 1), ("b", None), ("c", 3)]


@pytest.mark.parametrize("seed", range(40))
def test_against_a_model(harness: Harnesses, seed: int) -> None:
    """Draws records with their times, watermarks, a capacity and a mode; computes what comes out when."""
    draw = random.Random(seed)
    capacity, is_ordered = draw.randint(1, 5), draw.random() < 0.5
    calls = harness(Sleep(), capacity=capacity, is_ordered=is_ordered)
    now, expected = 0, _Model(capacity, is_ordered)
    for number in range(draw.randint(1, 30)):
        if draw.random() < 0.25:
            calls.process_watermark(number)
            expected.add(now, ("watermark", number), None)
        else:
            takes = draw.randint(1, 50)
            calls.process_element((number, takes))
            expected.add(now, number, takes)
        if draw.random() < 0.5:
            now += (passed := draw.randint(1, 30))
            calls.advance(passed)
    calls.advance(10_000)
    model = expected.run()
    emitted_at = dict(model)
    names = [name for name, _time in model if not isinstance(name, tuple)]
    assert sorted(calls.output) == sorted(names), seed
    times = [emitted_at[name] for name in calls.output]
    assert times == sorted(times), seed  # of results that come at the same time either may be first
    if is_ordered:
        assert calls.output == names, seed
    borders = [name[1] for name, _time in model if isinstance(name, tuple)]
    # consecutive watermarks may be sent as one
    assert calls.watermarks[-1:] == borders[-1:], seed
    assert set(calls.watermarks) <= set(borders), seed


class _Model:
    """Async I/O by the definition: a list of records, each with the time at which it is done."""

    def __init__(self, capacity: int, is_ordered: bool):
        self._capacity, self._is_ordered = capacity, is_ordered
        self._items: list[tuple[int, Any, int | None]] = []

    def add(self, arrival: int, name: Any, takes: int | None) -> None:
        self._items.append((arrival, name, takes))

    def run(self) -> list[tuple[Any, int]]:
        queue: list[tuple[Any, int | None]] = []  # name, done at (None for a border)
        waiting = list(self._items)
        out: list[tuple[Any, int]] = []
        started: dict[Any, int] = {}
        for now in range(20_000):
            progressed = True
            while progressed:
                progressed = False
                while waiting and waiting[0][0] <= now:
                    _, name, takes = waiting.pop(0)
                    queue.append((name, takes))
                    progressed = True
                running = [name for name, takes in queue if takes is not None and name in started]
                for name, takes in queue:
                    if takes is not None and name not in started and len(running) < self._capacity:
                        started[name] = now + takes
                        running.append(name)
                        progressed = True
                first = self._emittable(queue, started, now)
                if first is not None:
                    out.append((first, now))
                    queue = [each for each in queue if each[0] != first]
                    progressed = True
            if not waiting and not queue:
                break
        return out

    def _emittable(self, queue: list[tuple[Any, int | None]], started: dict[Any, int], now: int) -> Any:
        if not queue:
            return None
        if queue[0][1] is None:
            return queue[0][0]
        done = []
        for name, takes in queue:
            if takes is None:
                break
            if name in started and started[name] <= now:
                done.append((started[name], name))
            if self._is_ordered:
                break
        return min(done)[1] if done else None


# -- capacity -----------------------------------------------------------------------------------------------


def test_no_more_calls_than_the_capacity(harness: Harnesses) -> None:
    function = Sleep()
    calls = harness(function, capacity=2, is_ordered=False)
    calls.process_elements([("a", 30), ("b", 10), ("c", 10), ("d", 50)])
    assert function.started == ["a", "b"]
    calls.advance(10)
    assert function.started == ["a", "b", "c"]
    calls.advance(20)
    assert calls.output == ["b", "c", "a"]
    assert function.started == ["a", "b", "c", "d"]


def test_results_that_wait_for_others_count(harness: Harnesses) -> None:
    function = Sleep()
    calls = harness(function, capacity=2)
    calls.process_elements([("a", 30), ("b", 10), ("c", 10)])
    calls.advance(20)
    assert function.started == ["a", "b"]
    calls.advance(10)
    assert function.started == ["a", "b", "c"]


# -- timeouts -----------------------------------------------------------------------------------------------


def test_a_timeout_raises_by_default_and_cancels_the_call(harness: Harnesses) -> None:
    function = Sleep()
    calls = harness(function, timeout=Time.milliseconds(20))
    calls.process_element(("a", 50))
    with pytest.raises(TimeoutError, match=r"timed out for input: .*'a', 50"):
        calls.advance(20)
    assert function.cancelled == ["a"]


def test_the_timeout_handler_gives_the_result(harness: Harnesses) -> None:
    class Default(Sleep):
        def timeout(self, value: Any) -> list[Any]:
            return [f"default of {value[0]}", "and more"]

    calls = harness(Default(), timeout=Time.milliseconds(20))
    calls.process_element(("a", 50))
    calls.process_element(("b", 19))
    calls.advance(10)
    calls.process_element(("c", 15))
    calls.process_element(("d", 40))
    calls.advance(100)
    assert calls.output == ["default of a", "and more", "b", "c", "default of d", "and more"]


def test_an_awaited_timeout_handler(harness: Harnesses) -> None:
    class Default(Sleep):
        async def timeout(self, value: Any) -> list[Any]:  # type: ignore[override]
            await asyncio.sleep(0.01)
            return ["default"]

    calls = harness(Default(), timeout=Time.milliseconds(20))
    calls.process_element(("a", 50))
    calls.advance(29)
    assert calls.output == []
    calls.advance(1)
    assert calls.output == ["default"]


def test_a_call_that_ignores_its_cancellation_gives_no_second_result(harness: Harnesses) -> None:
    class Stubborn(AsyncFunction[Any, Any]):
        async def async_invoke(self, value: Any) -> list[Any]:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                pass
            return ["late"]

        def timeout(self, value: Any) -> list[Any]:
            return ["default"]

    calls = harness(Stubborn(), timeout=Time.milliseconds(20))
    calls.process_element("a")
    calls.advance(2000)
    assert calls.output == ["default"]


# -- retries ------------------------------------------------------------------------------------------------


def test_a_fixed_delay(harness: Harnesses) -> None:
    function = Failing(errors=2, empty=1)
    strategy = AsyncRetryStrategy.fixed_delay(3, 100, is_empty, any_error)
    calls = harness(function, timeout=Time.seconds(5), retry_strategy=strategy)
    calls.process_element("a")
    calls.advance(1000)
    assert function.times == [0, 110, 220, 330]
    assert calls.output == ["a"]


def test_delays_that_grow_for_each_record_by_itself(harness: Harnesses) -> None:
    strategy = AsyncRetryStrategy.exponential_backoff(5, 100, 300, 2.0, None, any_error)
    assert [strategy.get_backoff_time_millis(attempt) for attempt in (1, 2, 1, 3, 4, 2)] == [
        100,
        200,
        100,
        300,
        300,
        200,
    ]
    function = Failing(errors=4)
    calls = harness(function, timeout=Time.seconds(5), retry_strategy=strategy)
    calls.process_element("a")
    calls.advance(2000)
    assert function.times == [0, 110, 320, 630, 940]


def test_the_last_error_fails_the_job_after_all_attempts(harness: Harnesses) -> None:
    function = Failing(errors=9)
    strategy = AsyncRetryStrategy.fixed_delay(2, 10, None, any_error)
    calls = harness(function, timeout=Time.seconds(5), retry_strategy=strategy)
    calls.process_element("a")
    with pytest.raises(ConnectionError, match="attempt 3"):
        calls.advance(1000)


def test_the_last_result_is_emitted_after_all_attempts(harness: Harnesses) -> None:
    function = Failing(errors=0, empty=9)
    strategy = AsyncRetryStrategy.fixed_delay(2, 10, is_empty, None)
    calls = harness(function, timeout=Time.seconds(5), retry_strategy=strategy)
    calls.process_element("a")
    calls.advance(1000)
    assert len(function.times) == 3
    assert calls.output == []
    calls.finish()


def test_the_timeout_includes_all_attempts(harness: Harnesses) -> None:
    function = Failing(errors=99)
    strategy = AsyncRetryStrategy.fixed_delay(99, 50, None, any_error)
    calls = harness(function, timeout=Time.milliseconds(130), retry_strategy=strategy)
    calls.process_element("a")
    calls.advance(1000)
    assert function.times == [0, 60, 120]
    assert calls.output == ["timed out"]


def test_an_error_that_no_predicate_accepts_is_not_retried(harness: Harnesses) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(9, 50, is_empty, lambda error: isinstance(error, ValueError))
    calls = harness(Failing(errors=1), timeout=Time.seconds(5), retry_strategy=strategy)
    calls.process_element("a")
    with pytest.raises(ConnectionError, match="attempt 1"):
        calls.advance(1000)


# -- results ------------------------------------------------------------------------------------------------


class Returning(AsyncFunction[Any, Any]):
    """Returns the record as its results."""

    async def async_invoke(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(("value", "text"), [(None, "cannot be None"), (7, "should be a list, but it is a int")])
def test_a_result_that_is_no_list(harness: Harnesses, value: Any, text: str) -> None:
    calls = harness(Returning())
    with pytest.raises(InvalidProgramError, match=text):
        calls.process_element(value)


def test_any_iterable_will_do(harness: Harnesses) -> None:
    calls = harness(Returning())
    calls.process_elements([(1, 2), [], {3: 4}, "ab", [None]])
    assert calls.output == [1, 2, 3, "a", "b", None]


def test_records_and_results_are_nobody_elses(harness: Harnesses) -> None:
    class Mutating(AsyncFunction[Any, Any]):
        def __init__(self) -> None:
            self.last: list[Any] = []

        async def async_invoke(self, value: Any) -> list[Any]:
            self.last.append("changed after it was returned")
            value.append("changed")
            self.last = value
            await asyncio.sleep(0.01)
            return [value]

    record = ["a"]
    calls = harness(Mutating(), is_ordered=False)
    calls.process_element(record)
    snapshot = calls.snapshot()
    calls.advance(10)
    calls.process_element(["b"])
    calls.advance(10)
    assert calls.output == [["a", "changed"], ["b", "changed"]]
    restored = harness(Mutating()).initialize_state(snapshot)
    restored.open()
    restored.advance(10)
    assert restored.output == [["a", "changed"]]


def test_a_call_that_is_cancelled_by_itself_fails(harness: Harnesses) -> None:
    class Cancelling(AsyncFunction[Any, Any]):
        async def async_invoke(self, value: Any) -> list[Any]:
            raise asyncio.CancelledError

    calls = harness(Cancelling())
    with pytest.raises(RuntimeError, match="cancelled its own call"):
        calls.process_element(1)


# -- life ---------------------------------------------------------------------------------------------------


def test_open_and_close_as_coroutines_and_as_methods(harness: Harnesses) -> None:
    class Client(AsyncFunction[Any, Any]):
        def __init__(self) -> None:
            self.story: list[str] = []

        async def open(self, runtime_context: Any) -> None:  # type: ignore[override]
            asyncio.get_running_loop()
            self.story.append("opened")

        async def async_invoke(self, value: Any) -> list[Any]:
            try:
                await asyncio.sleep(1)
            finally:
                self.story.append("ended")
            return [value]

        async def close(self) -> None:  # type: ignore[override]
            self.story.append("closed")

    function = Client()
    with harness(function) as calls:
        calls.process_element(1)
    assert function.story == ["opened", "ended", "closed"]


def test_finish_needs_all_results(harness: Harnesses) -> None:
    calls = harness(Sleep())
    calls.process_element(("a", 10))
    with pytest.raises(RuntimeError, match="under way"):
        calls.finish()
    calls.advance(10)
    calls.finish()
    assert calls.output == ["a"]


def test_metrics(harness: Harnesses) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(9, 10, None, any_error)
    calls = harness(Failing(errors=99), timeout=Time.milliseconds(25), retry_strategy=strategy, capacity=2)
    calls.process_elements("abc")
    metrics = calls._chained.metrics.metrics
    assert metrics["asyncCallsInFlight"].read() == 2
    calls.advance(100)
    read = {name: metrics[name].read() for name in ("asyncCallsInFlight", "numAsyncTimeouts", "numAsyncRetries")}
    assert read == {"asyncCallsInFlight": 0, "numAsyncTimeouts": 3, "numAsyncRetries": 3}


# -- checkpoints --------------------------------------------------------------------------------------------


def test_what_is_in_flight_is_called_again_in_order(harness: Harnesses) -> None:
    calls = harness(Sleep(), capacity=2)
    calls.process_element(("a", 30), 1)
    calls.process_element(("b", 10), 2)
    calls.process_watermark(2)
    calls.process_element(("c", 10), 3)
    calls.advance(20)
    snapshot = calls.snapshot()
    function = Sleep()
    restored = harness(function, capacity=2).initialize_state(snapshot)
    restored.open()
    assert function.started == ["a", "b"]
    restored.advance(40)
    assert restored.records == [("a", 1), ("b", 2), ("c", 3)]
    assert restored.watermarks == [2]


def test_emitted_results_are_not_in_the_snapshot(harness: Harnesses) -> None:
    calls = harness(Sleep(), is_ordered=False)
    calls.process_elements([("a", 30), ("b", 10)])
    calls.advance(10)
    assert calls.output == ["b"]
    restored = harness(Sleep(), is_ordered=False).initialize_state(calls.snapshot())
    restored.open()
    restored.advance(100)
    assert restored.output == ["a"]


@pytest.mark.parametrize("is_keyed", [False, True])
def test_rescaling(harness: Harnesses, is_keyed: bool) -> None:
    options = {"key_selectors": (lambda value: value[0] % 7,)} if is_keyed else {}
    calls = harness(Sleep(), is_ordered=True, parallelism=1, **options)
    for number in range(50):
        calls.process_element((number, 10), number)
        calls.process_watermark(number)
    snapshot = calls.snapshot()
    parts = []
    for subtask in range(3):
        part = harness(Sleep(), parallelism=3, subtask=subtask, **options).initialize_state(snapshot)
        part.open()
        part.advance(10)
        parts.append(part.output)
        assert part.watermarks == []
    assert sorted(number for part in parts for number in part) == list(range(50))
    assert all(part == sorted(part) for part in parts)
    if is_keyed:
        assert all({n % 7 for n in a}.isdisjoint(n % 7 for n in b) for a in parts for b in parts if a is not b)
    together = HarnessSnapshot.combine(*[_snapshot_of(harness, snapshot, subtask, options) for subtask in range(3)])
    alone = harness(Sleep(), **options).initialize_state(together)
    alone.open()
    alone.advance(10)
    assert sorted(alone.output) == list(range(50))


def _snapshot_of(harness: Harnesses, snapshot: HarnessSnapshot, subtask: int, options: Any) -> HarnessSnapshot:
    return harness(Sleep(), parallelism=3, subtask=subtask, **options).initialize_state(snapshot).snapshot()


def test_results_that_a_turn_has_left_are_not_repeated(harness: Harnesses) -> None:
    calls = harness(Returning())
    calls.open()
    calls._services.turn.is_over = True
    # only one part is emitted in a turn that is over
    calls._chained.operator.process_batch([list(range(3000))], None)  # type: ignore[union-attr]
    calls._services.event_loop.run_ready()
    calls._chained.operator.emit_results()  # type: ignore[union-attr]
    emitted = calls.output
    assert 0 < len(emitted) < 3000
    restored = harness(Returning()).initialize_state(calls.snapshot())
    restored.open()
    assert emitted + restored.output == list(range(3000))
