"""The functions of the programs in `programs`, and the classes of theirs that are in stored state.

As for the programs: what is here does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.common import Duration, Row, RowKind, Types
from firesteel.common.time import Instant, Time
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow
from firesteel.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
)
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.datastream.window import SessionWindowTimeGapExtractor, Trigger, TriggerResult

MARK = "mark"
END = 1000
FAR = 7_500_000_000_000
"""A processing time that no test comes to."""


class OnMark(WatermarkGenerator):
    """A watermark with each mark."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[0] == MARK:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


def own_values(number: int) -> list[Any]:
    """Values of classes that users take from Firesteel."""
    return [
        Row(number, "positions"),
        Row(number=number, text="names"),
        Row.of_kind(RowKind.UPDATE_BEFORE, number),
        RowKind.DELETE,
        Instant(number, 5),
        Duration.of_millis(number),
        Time.seconds(number),
        TimeWindow(number, number + 1),
        CountWindow(number),
        GlobalWindow(),
        OutputTag(f"tag {number}", Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.STRING())])),
        Types.MAP(Types.STRING(), Types.INSTANT()),
    ]


class Widest(AggregateFunction):
    """The window that covers all."""

    def create_accumulator(self) -> Any:
        return None

    def add(self, value: TimeWindow, accumulator: Any) -> Any:
        return value if accumulator is None else accumulator.cover(value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a.cover(acc_b)


class RememberOwnClasses(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        never = StateTtlConfig.new_builder(Time.days(400_000)).never_return_expired().build()
        self.states = []
        for prefix, ttl in ("", None), ("expiring-", never):
            descriptors: list[Any] = [
                ValueStateDescriptor(f"{prefix}last"),
                ListStateDescriptor(f"{prefix}all"),
                MapStateDescriptor(f"{prefix}counts"),
                ReducingStateDescriptor(f"{prefix}largest", max, None),
                AggregatingStateDescriptor(f"{prefix}widest", Widest(), None),
            ]
            if ttl is not None:
                for descriptor in descriptors:
                    descriptor.enable_time_to_live(ttl)
            last, everything, counts, largest, widest = descriptors
            self.states.append(
                (
                    runtime_context.get_state(last),
                    runtime_context.get_list_state(everything),
                    runtime_context.get_map_state(counts),
                    runtime_context.get_reducing_state(largest),
                    runtime_context.get_aggregating_state(widest),
                )
            )

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        number = value[1]
        seen: list[Any] = [ctx.get_current_key()]
        for last, everything, counts, largest, widest in self.states:
            seen.append(last.value())
            last.update(own_values(number))
            everything.add(Row.of_kind(RowKind.DELETE, number))
            for key in (Instant(number % 3, 0), Row(part=number % 3), RowKind.INSERT, (Time.seconds(1), number % 2)):
                counts.put(key, (counts.get(key) or 0) + 1)
            largest.add(Instant(number, 0))
            widest.add(TimeWindow(number, number + 2))
            seen += [list(everything.get()), sorted(map(repr, counts.items())), largest.get(), widest.get()]
        yield repr(seen)


SCRIPT = """
from dataclasses import dataclass
from firesteel.common import Row

@dataclass(frozen=True)
class Visit:
    page: str
    row: Row

    def copy(self, **values):
        return Visit(self.page, Row(**values))

class Page:
    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self):
        return hash(self.name)
"""


def script_classes() -> tuple[Any, Any]:
    """Classes as a script that is not imported defines them."""
    names: dict[str, Any] = {"__name__": "script_of_a_user"}
    exec(compile(SCRIPT, "script_of_a_user.py", "exec", dont_inherit=True), names)
    return names["Visit"], names["Page"]


class RememberScriptClasses(KeyedProcessFunction):
    def __init__(self) -> None:
        self.visit, self.page = script_classes()

    def open(self, runtime_context: Any) -> None:
        self.visits = runtime_context.get_list_state(ListStateDescriptor("visits"))
        self.pages = runtime_context.get_map_state(MapStateDescriptor("pages"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        page = self.page(f"page {value[1] % 2}")
        self.visits.add(self.visit(page.name, None).copy(at=value[2]))
        self.pages.put(page, (self.pages.get(page) or 0) + 1)
        visits = [(visit.page, visit.row, isinstance(visit, self.visit)) for visit in self.visits.get()]
        yield repr((value[0], visits, sorted((page.name, count) for page, count in self.pages.items())))


class TimersOfKeys(KeyedProcessFunction):
    """A timer ten after each record, and one that never fires."""

    def open(self, runtime_context: Any) -> None:
        self.values = runtime_context.get_list_state(ListStateDescriptor("values"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.values.add(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        ctx.timer_service().register_processing_time_timer(FAR)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        yield repr((ctx.get_current_key(), timestamp, ctx.time_domain().name, sorted(self.values.get())))


class Describe(ProcessWindowFunction[Any, Any, Any, Any]):
    """Tells the contents of a window, and how many windows of the key there were before; that is state.

    So is how often a window fired, unless windows merge.
    """

    def __init__(self, name: str, field: Any = None, *, merges: bool = False) -> None:
        self.name = name
        self.field = field
        self.merges = merges

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[str]:
        windows = context.global_state().get_list_state(ListStateDescriptor("windows"))
        windows.add(context.window())
        contents = [element if self.field is None else element[self.field] for element in elements]
        yield repr((self.name, key, context.window(), len(list(windows.get())), self._firings(context), contents))

    def _firings(self, context: Any) -> int | None:
        if self.merges:
            return None
        fired = context.window_state().get_state(ValueStateDescriptor("fired"))
        fired.update((fired.value() or 0) + 1)
        return int(fired.value())

    def clear(self, context: Any) -> None:
        if not self.merges:
            context.window_state().get_state(ValueStateDescriptor("fired")).clear()


class ValueSum(AggregateFunction):
    """The sum, in a row."""

    def create_accumulator(self) -> Row:
        return Row(sum=0)

    def add(self, value: Any, accumulator: Row) -> Row:
        return Row(sum=accumulator.sum + value[1])

    def get_result(self, accumulator: Row) -> int:
        return int(accumulator.sum)

    def merge(self, acc_a: Row, acc_b: Row) -> Row:
        return Row(sum=acc_a.sum + acc_b.sum)


class ByGap(SessionWindowTimeGapExtractor):
    """Its value is the gap of a record."""

    def extract(self, element: Any) -> int:
        return int(element[1])


class Threshold(Trigger[Any, Any]):
    """Fires when the values reach a sum, and at the end."""

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold
        self.sum = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(END)
        total = ctx.get_partitioned_state(self.sum)
        total.add(element[1])
        if total.get() < self.threshold:
            return TriggerResult.CONTINUE
        total.clear()
        return TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE

    def on_merge(self, window: Any, ctx: Any) -> None:
        raise AssertionError("the global window does not merge")

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.sum).clear()
        ctx.delete_event_time_timer(END)


class JoinAtEnd(KeyedCoProcessFunction):
    """Both sides of a key when event time ends."""

    def open(self, runtime_context: Any) -> None:
        self.sides = [runtime_context.get_list_state(ListStateDescriptor(name)) for name in ("left", "right")]

    def process_element1(self, value: Any, ctx: Any) -> None:
        self.sides[0].add(Row(left=value[1]))
        ctx.timer_service().register_event_time_timer(END)

    def process_element2(self, value: Any, ctx: Any) -> None:
        self.sides[1].add(Row(right=value[1]))
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        yield repr((ctx.get_current_key(), timestamp, *(sorted(map(repr, side.get())) for side in self.sides)))


class Buffer(MapFunction, CheckpointedFunction):
    """Lets records go on a few at a time; the others are in operator state, and how many there were in union state."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.waiting: list[Row] = []
        self.count = 0

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.list = store.get_list_state(ListStateDescriptor("waiting"))
        self.union = store.get_union_list_state(ListStateDescriptor("count"))
        self.waiting = list(self.list.get())
        self.count = sum(row.count for row in self.union.get())

    def snapshot_state(self, context: Any) -> None:
        self.list.update(self.waiting)
        self.union.update([Row(count=self.count)])

    def map(self, value: Any) -> str:
        self.count += 1
        self.waiting.append(Row(*value))
        if len(self.waiting) < self.size:
            return ""
        gone, self.waiting = self.waiting, []
        return repr((self.count, gone))


class PricedAtEnd(KeyedBroadcastProcessFunction):
    """The records of a key, and the prices that are known at the end."""

    STATES = (MapStateDescriptor("prices"), MapStateDescriptor("changes"))

    def open(self, runtime_context: Any) -> None:
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.waiting.add(Row(*value))
        ctx.timer_service().register_event_time_timer(END)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        prices, changes = (ctx.get_broadcast_state(each) for each in self.STATES)
        prices.put(Row(item=value[0]), Row.of_kind(RowKind.UPDATE_AFTER, value[1]))
        changes.put(Instant(value[1], 0), value[0])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        prices, changes = (ctx.get_broadcast_state(each) for each in self.STATES)
        key = ctx.get_current_key()
        seen = sorted((instant.seconds, item) for instant, item in changes.items())
        yield repr((key, list(self.waiting.get()), prices.get(Row(item=key)), seen))


class SeenPrices(BroadcastProcessFunction):
    """Passes records on, and tells all prices with the last one."""

    STATES = (MapStateDescriptor("seen"),)

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        yield repr(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[str]:
        seen = ctx.get_broadcast_state(self.STATES[0])
        seen.put(value[0], Time.seconds(value[1]))
        if value[0] == "end":
            yield repr(sorted(seen.items()))


class NumberedPairs(KeyedProcessFunction):
    """How many records of a key there were, and which ones."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield value[0], value[1]
        yield value[0], number


class Pending:
    """A text that is long enough for several buffers."""

    def __init__(self, number: int) -> None:
        self.text = f"{number:064}"
