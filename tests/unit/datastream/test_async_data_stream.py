"""The API of async I/O: checks, names and modules, and ``async def`` where it cannot work."""

from __future__ import annotations

import functools
import importlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    SinkFunction,
    async_retry_predicates,
    async_retry_strategies,
)
from firesteel.datastream.functions import AsyncFunctionDescriptor, CoMapFunction
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import test_environment as environment


class Fine(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


class Sync(AsyncFunction[Any, Any]):
    def async_invoke(self, value: Any) -> list[Any]:  # type: ignore[override]
        return [value]


@pytest.fixture
def numbers() -> DataStream:
    return environment().from_collection([1, 2, 3])


WAYS = [AsyncDataStream.unordered_wait, AsyncDataStream.ordered_wait]
RETRYING = [AsyncDataStream.unordered_wait_with_retry, AsyncDataStream.ordered_wait_with_retry]


@pytest.mark.parametrize("wait", WAYS)
def test_bad_arguments(numbers: DataStream, wait: Any) -> None:
    with pytest.raises(InvalidProgramError, match="'async_invoke' of class 'Sync' should be declared as 'async def'"):
        wait(numbers, Sync(), Time.seconds(1))
    with pytest.raises(TypeError, match=r"write Fine\(\)"):
        wait(numbers, Fine, Time.seconds(1))
    with pytest.raises(TypeError, match="needs an AsyncFunction"):
        wait(numbers, lambda value: [value], Time.seconds(1))
    with pytest.raises(TypeError, match=r"Time\.seconds"):
        wait(numbers, Fine(), 5)
    for capacity in (0, -1, 1.5, None):
        with pytest.raises(InvalidProgramError, match="capacity"):
            wait(numbers, Fine(), Time.seconds(1), capacity)


@pytest.mark.parametrize("wait", RETRYING)
def test_bad_retry_strategies(numbers: DataStream, wait: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(3, 10, None, async_retry_predicates.has_exception_predicate)
    with pytest.raises(InvalidProgramError, match="should not be None"):
        wait(numbers, Fine(), Time.seconds(1), None)
    with pytest.raises(InvalidProgramError, match="Timeout should be configured"):
        wait(numbers, Fine(), Time.milliseconds(0), strategy)
    wait(numbers, Fine(), Time.milliseconds(0), AsyncRetryStrategy.no_restart())
    for arguments in ((0, 1), (1, 0)):
        with pytest.raises(AssertionError, match="should be greater than zero"):
            AsyncRetryStrategy.fixed_delay(*arguments, None, None)
    with pytest.raises(AssertionError, match="multiplier should be greater than zero"):
        AsyncRetryStrategy.exponential_backoff(1, 1, 1, 0, None, None)


def test_name_type_and_parallelism(numbers: DataStream) -> None:
    stream = AsyncDataStream.ordered_wait(numbers, Fine(), Time.seconds(1), 7, Types.INT()).set_parallelism(3)
    assert stream.get_name() == "async wait operator"
    assert stream.get_type() == Types.INT()


def test_modules_of_pyflink() -> None:
    assert importlib.import_module("firesteel.datastream.async_data_stream").AsyncDataStream is AsyncDataStream
    strategies = importlib.import_module("firesteel.datastream.async_retry_strategies")
    assert strategies.NO_RETRY_STRATEGY is async_retry_strategies.NO_RETRY_STRATEGY
    predicates = importlib.import_module("firesteel.datastream.async_retry_predicates")
    assert predicates.empty_result_predicate([])
    assert AsyncFunctionDescriptor.OutputMode.UNORDERED.value == 1


async def coroutine(value: Any) -> Any:
    return value


async def generator(value: Any) -> AsyncIterator[Any]:
    yield value


class AsyncMap(MapFunction):
    async def map(self, value: Any) -> Any:
        return value


class AsyncKey(KeySelector):
    async def get_key(self, value: Any) -> Any:
        return value


class AsyncOpen(MapFunction):
    async def open(self, runtime_context: Any) -> None:  # type: ignore[override]
        pass

    def map(self, value: Any) -> Any:
        return value


class AsyncProcess(ProcessFunction):
    async def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class AsyncTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    async def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


class AsyncCoMap(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    async def map2(self, value: Any) -> Any:
        return value


class AsyncAggregate(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    async def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a


class AsyncWindow(ProcessWindowFunction[Any, Any, Any, Any]):
    async def process(self, key: Any, context: Any, elements: Any) -> Any:  # type: ignore[override]
        yield key


class AsyncSink(SinkFunction):
    async def invoke(self, value: Any) -> None:  # type: ignore[override]
        pass


WINDOWS = TumblingEventTimeWindows.of(Time.seconds(1))
REFUSED: dict[str, Callable[[DataStream], Any]] = {
    "map": lambda s: s.map(coroutine),
    "map, partial": lambda s: s.map(functools.partial(coroutine)),
    "map, generator": lambda s: s.map(generator),
    "map, object": lambda s: s.map(AsyncMap()),
    "open": lambda s: s.map(AsyncOpen()),
    "filter": lambda s: s.filter(coroutine),
    "flat_map": lambda s: s.flat_map(generator),
    "key_by": lambda s: s.key_by(coroutine),
    "key_by, object": lambda s: s.key_by(AsyncKey()),
    "partition_custom": lambda s: s.partition_custom(coroutine, lambda value: value),
    "process": lambda s: s.process(AsyncProcess()),
    "timer": lambda s: s.key_by(lambda value: value).process(AsyncTimer()),
    "reduce": lambda s: s.key_by(lambda value: value).reduce(coroutine),
    "co-map": lambda s: s.connect(s).map(AsyncCoMap()),
    "window reduce": lambda s: s.key_by(lambda value: value).window(WINDOWS).reduce(coroutine),
    "aggregate": lambda s: s.key_by(lambda value: value).window(WINDOWS).aggregate(AsyncAggregate()),
    "window": lambda s: s.key_by(lambda value: value).window(WINDOWS).process(AsyncWindow()),
    "sink": lambda s: s.add_sink(AsyncSink()),
}


@pytest.mark.parametrize("way", REFUSED)
def test_async_def_where_nothing_awaits_it(numbers: DataStream, way: str) -> None:
    with pytest.raises(InvalidProgramError, match="declared as 'async def'") as caught:
        REFUSED[way](numbers)
    assert "AsyncDataStream" in (caught.value.hint or "")


def test_a_coroutine_that_the_function_calls_itself(numbers: DataStream) -> None:
    class Own(MapFunction):
        async def fetch(self, value: Any) -> Any:
            return value

        def map(self, value: Any) -> Any:
            return value

    numbers.map(Own()).assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())
