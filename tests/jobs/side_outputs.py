"""B3: side outputs from every process-type function, each read, one of them twice, and one that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.datastream import (
    CoProcessFunction,
    DataStream,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.window import TumblingEventTimeWindows

ODD = OutputTag("odd", Types.INT())
BIG = OutputTag("big")
SUMS = OutputTag("sums", Types.TUPLE([Types.LONG(), Types.LONG()]))
UNREAD = OutputTag("unread")


class Split(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        yield UNREAD, value
        if value % 2:
            yield ODD, value
        if value > 4:
            yield BIG, value
        yield value


class Keyed(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(50)
        if value == ctx.get_current_key():
            yield ODD, value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield f"timer of key {ctx.get_current_key()}"
        yield BIG, (ctx.get_current_key(), timestamp)


class Co(CoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> Iterator[Any]:
        yield ODD, value

    def process_element2(self, value: int, ctx: Any) -> Iterator[Any]:
        yield value


class KeyedCo(KeyedCoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> Iterator[Any]:
        yield f"first {value}"

    def process_element2(self, value: int, ctx: Any) -> Iterator[Any]:
        yield ODD, value * 100 + ctx.get_current_key()


class Window(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().start, sorted(elements)
        yield BIG, (key, context.window().end)


class AllWindow(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield SUMS, (context.window().start, sum(elements))


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value * 10)
    numbers = env.from_collection([1, 2, 3, 4, 5, 6]).assign_timestamps_and_watermarks(strategy)
    windows = TumblingEventTimeWindows.of(Time.milliseconds(40))

    split = numbers.process(Split())
    keyed = numbers.key_by(lambda value: value % 2).process(Keyed())
    co = numbers.connect(numbers).process(Co())
    keyed_co = numbers.connect(numbers).key_by(lambda value: value % 3, lambda value: value % 3).process(KeyedCo())
    window = numbers.key_by(lambda value: value % 2).window(windows).process(Window())
    all_windows = numbers.window_all(windows).process(AllWindow())

    streams = {
        "process": split,
        "process odd": split.get_side_output(ODD),
        "process odd again": split.get_side_output(ODD).filter(lambda value: value != 1),
        "process big": split.get_side_output(BIG),
        "keyed": keyed,
        "keyed odd": keyed.get_side_output(ODD),
        "keyed big, from a timer": keyed.get_side_output(BIG),
        "co": co,
        "co odd": co.get_side_output(ODD),
        "keyed co": keyed_co,
        "keyed co odd": keyed_co.get_side_output(ODD),
        "window": window,
        "window big": window.get_side_output(BIG),
        "all windows": all_windows,
        "all windows odd": all_windows.get_side_output(SUMS),
    }
    labelled = [stream.map(lambda value, name=name: f"{name}: {value}") for name, stream in streams.items()]
    return labelled[0].union(*labelled[1:])
