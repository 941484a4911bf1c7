"""A typed program: ``assert_type`` states what mypy and pyright infer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common import Time, WatermarkStrategy
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.datastream import (
    AggregateFunction,
    AllWindowedStream,
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    ConnectedStreams,
    CoProcessFunction,
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeyedStream,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    TimeWindow,
    WindowedStream,
)
from firesteel.datastream.functions import KeyedCoProcessFunction
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, _):
        return value


@dataclass(frozen=True)
class Event:
    user: str
    cents: int


@dataclass(frozen=True)
class Click(Event):
    page: str = ""


EVENTS = [Event("Ada", 100), Event("Grace", 250)]
LATE = OutputTag[Event]("late")


class Name(MapFunction[Event, str]):
    def map(self, value: Event) -> str:
        return value.user


class Split(FlatMapFunction[str, str]):
    def flat_map(self, value: str) -> Iterable[str]:
        return value.split()


class Costly(FilterFunction[Event]):
    def filter(self, value: Event) -> bool:
        return value.cents > 100


class ByUser(KeySelector[Event, str]):
    def get_key(self, value: Event) -> str:
        return value.user


class Dearer(ReduceFunction[Event]):
    def reduce(self, value1: Event, value2: Event) -> Event:
        return max(value1, value2, key=lambda event: event.cents)


class Cents(ProcessFunction[Event, int]):
    def process_element(self, value: Event, ctx: ProcessFunction.Context) -> Iterable[int | tuple[OutputTag, Event]]:
        yield value.cents
        yield LATE, value


class PerUser(KeyedProcessFunction[str, Event, float]):
    def process_element(self, value: Event, ctx: KeyedProcessFunction.Context) -> Iterable[float]:
        yield value.cents / 100


class Total(AggregateFunction[Event, int, float]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Event, accumulator: int) -> int:
        return accumulator + value.cents

    def get_result(self, accumulator: int) -> float:
        return accumulator / 100

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Report(ProcessWindowFunction[float, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[float]
    ) -> Iterable[str]:
        assert_type(context.window(), TimeWindow)
        for element in elements:
            yield f"{key}: {element}"


class Both(CoProcessFunction[Event, int, str]):
    def process_element1(self, value: Event, ctx: CoProcessFunction.Context) -> Iterable[str]:
        yield value.user

    def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Iterable[str]:
        yield str(value)


class BothKeyed(KeyedCoProcessFunction[str, Event, int, bytes]):
    def process_element1(self, value: Event, ctx: KeyedCoProcessFunction.Context) -> Iterable[bytes]:
        yield value.user.encode()

    def process_element2(self, value: int, ctx: KeyedCoProcessFunction.Context) -> None:
        pass


class Rules(BroadcastProcessFunction[Event, int, str]):
    def process_element(self, value: Event, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[str]:
        yield value.user

    def process_broadcast_element(self, value: int, ctx: BroadcastProcessFunction.Context) -> None:
        pass


class Untyped(MapFunction):
    def map(self, value: Any) -> Any:
        return value


def build(env: StreamExecutionEnvironment) -> DataStream[str]:
    """Adds every typed operation to the program; returns one of the streams."""
    numbers = env.from_sequence(1, 10)
    assert_type(numbers, DataStream[int])
    assert_type(env.from_collection(["a"], Types.STRING()), DataStream[str])
    assert_type(env.from_collection([(1, "a")], Types.ROW([Types.INT(), Types.STRING()])), DataStream[Row])

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event.cents)
    events = env.from_collection(EVENTS).assign_timestamps_and_watermarks(strategy)
    assert_type(events, DataStream[Event])
    assert_type(events.map(lambda event: event.cents), DataStream[int])
    assert_type(events.map(Name()), DataStream[str])
    assert_type(events.map(Name()).map(len).set_parallelism(1).name("lengths"), DataStream[int])
    assert_type(events.map(Name()).flat_map(str.split), DataStream[str])
    assert_type(events.map(Name()).flat_map(Split()), DataStream[str])
    assert_type(events.filter(lambda event: event.cents > 1).filter(Costly()), DataStream[Event])
    assert_type(events.union(events), DataStream[Event])
    assert_type(events.union(numbers).map(lambda value: value), DataStream[Event | int])
    assert_type(events.rebalance(), DataStream[Event])
    cents = events.process(Cents())
    assert_type(cents, DataStream[int])
    assert_type(cents.get_side_output(LATE), DataStream[Event])
    assert_type(events.map(Untyped()), DataStream[Any])

    by_user = events.key_by(lambda event: event.user)
    assert_type(by_user, KeyedStream[Event, str])
    assert_type(events.key_by(ByUser()), KeyedStream[Event, str])
    assert_type(by_user.process(PerUser()), DataStream[float])
    assert_type(by_user.reduce(lambda a, b: a if a.cents > b.cents else b), DataStream[Event])
    assert_type(by_user.reduce(Dearer()), DataStream[Event])
    assert_type(by_user.max_by("cents"), DataStream[Event])
    windows = by_user.window(TumblingEventTimeWindows.of(Time.minutes(5)))
    assert_type(windows, WindowedStream[Event, str, TimeWindow])
    assert_type(windows.reduce(Dearer()), DataStream[Event])
    assert_type(windows.aggregate(Total()), DataStream[float])
    reports = windows.allowed_lateness(1000).aggregate(Total(), Report())
    assert_type(reports, DataStream[str])
    everything = events.window_all(TumblingEventTimeWindows.of(Time.minutes(5)))
    assert_type(everything, AllWindowedStream[Event, TimeWindow])

    connected = events.connect(numbers)
    assert_type(connected, ConnectedStreams[Event, int])
    assert_type(connected.process(Both()), DataStream[str])
    keyed = connected.key_by(lambda event: event.user, lambda number: str(number))
    assert_type(keyed.process(BothKeyed()), DataStream[bytes])
    rules = numbers.broadcast(MapStateDescriptor("rules", Types.INT(), Types.INT()))
    assert_type(events.connect(rules), BroadcastConnectedStream[Event, int])
    assert_type(events.connect(rules).process(Rules()), DataStream[str])

    clicks: DataStream[Click] = env.from_collection([Click("Ada", 1, "/")])
    wider: DataStream[Event] = clicks  # a stream of clicks is a stream of events
    assert_type(wider.map(Name()), DataStream[str])
    assert_type(clicks.map(Name()), DataStream[str])
    return events.map(Name())


def collect(stream: DataStream[str]) -> None:
    for name in stream.execute_and_collect():
        assert_type(name, str)
    assert_type(stream.execute_and_collect(limit=2), list[str])
    assert_type(stream.execute_and_collect("job", 2), list[str])
