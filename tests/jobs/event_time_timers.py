"""B13: event-time timers per key: deduplicated, deleted, set from a timer, fired in order of time.

Every record sets a timer 10 ms later, twice, which counts once; "stop" deletes the one of the record before it. A timer
sets one more, 100 ms after itself, the first time.

As a batch the records of a key come in the order of their time, before any watermark; all timers fire at the key's end,
and one that is set while they do is ignored, as in Flink.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from tests.support.jobs.punctuated import WATERMARK, timeline

RECORDS = [
    ("a", "go", 5),
    ("a", "go", 2),
    ("b", "go", 5),
    (WATERMARK, None, 11),
    ("a", "go", 5),  # the timer of 15 is there already
    ("b", "go", 20),
    (WATERMARK, None, 15),
    ("b", "stop", 21),  # deletes the timer of 30
    ("c", "go", 1),  # its timer of 11 is past: it fires with the next watermark
    (WATERMARK, None, 16),
    (WATERMARK, None, 40),
]


class Timers(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.latest = runtime_context.get_state(ValueStateDescriptor("latest", None))
        self.again = runtime_context.get_state(ValueStateDescriptor("again", None))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        if value[1] == "stop":
            timers.delete_event_time_timer(self.latest.value())
        else:
            due = ctx.timestamp() + 10
            timers.register_event_time_timer(due)
            timers.register_event_time_timer(due)
            self.latest.update(due)
        yield value[0], value[1], ctx.timestamp(), _watermark(ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if self.again.value() is None:
            self.again.update(True)
            ctx.timer_service().register_event_time_timer(timestamp + 100)
        yield ctx.get_current_key(), "timer", timestamp, _watermark(ctx)


def _watermark(ctx: Any) -> Any:
    now = ctx.timer_service().current_watermark()
    return "none" if now < -(10**6) else "end" if now > 10**6 else now


def build(env: StreamExecutionEnvironment) -> DataStream:
    return timeline(env, RECORDS).key_by(lambda record: record[0]).process(Timers())


def key_of(result: Any) -> Any:
    return result[0]


def after_restore(line: str) -> str:
    """A timer that is past when it is set fires with the next watermark; after a restore that is the last one again."""
    return line.rpartition(",")[0] if "timer" in line else line
