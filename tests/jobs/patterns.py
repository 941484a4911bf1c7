"""B16: patterns on a keyed stream and on a whole one, with partial matches that time out and late events.

As a batch nothing is late, as there is no watermark before the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.cep import (
    CEP,
    AfterMatchSkipStrategy,
    Pattern,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
)
from firesteel.common.time import Time
from firesteel.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from tests.support.jobs.punctuated import WATERMARK, timeline

LATE = OutputTag("late")
TIMED_OUT = OutputTag("timed out")

RECORDS = [
    ("a", 1, 3),
    ("b", 2, 4),
    ("a", 900, 7),
    ("a", 2, 5),  # out of order
    (WATERMARK, None, 6),
    ("b", 700, 6),  # late
    ("b", 3, 9),
    ("a", 3, 11),
    (WATERMARK, None, 10),
    ("c", 1, 12),
    ("b", 950, 13),
    ("a", 4, 14),
    ("a", 800, 15),
    (WATERMARK, None, 20),
    ("c", 999, 30),  # the small one was at 12: timed out
    ("a", 1, 31),
    ("a", 2, 32),
    (WATERMARK, None, 33),
    ("a", 990, 34),
]


def is_small(record: Any) -> bool:
    return bool(record[1] < 10)


def is_large(record: Any) -> bool:
    return bool(record[1] >= 500)


class Alert(PatternProcessFunction, TimedOutPartialMatchHandler):
    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterable[Any]:
        small, large = match["small"], match["large"][0]
        yield "alert", large[0], [value for _, value, _ in small], large[1], ctx.timestamp()

    def process_timed_out_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterable[Any]:
        small = match["small"]
        yield TIMED_OUT, ("timed out", small[0][0], [value for _, value, _ in small], ctx.timestamp())


def build(env: StreamExecutionEnvironment) -> DataStream:
    stream = timeline(env, RECORDS)
    pattern = (
        Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event())
        .where(is_small)
        .one_or_more()
        .followed_by("large")
        .where(is_large)
        .within(Time.milliseconds(10))
    )
    keyed = CEP.pattern(stream.key_by(lambda record: record[0]), pattern)
    alerts = keyed.side_output_late_data(LATE).process(Alert())
    rising = (
        Pattern.begin("first")
        .where(is_small)
        .next("second")
        .where(lambda record, ctx: record[1] > ctx.get_events_for_pattern("first")[0][1])
    )
    neighbours = CEP.pattern(stream, rising).select(lambda match: ("rising", "all", match["first"], match["second"]))
    late = alerts.get_side_output(LATE).map(lambda record: ("late", *record))
    return alerts.union(alerts.get_side_output(TIMED_OUT), late, neighbours)


def key_of(result: Any) -> Any:
    # those of the operator that is not parallel are spread over the subtasks after it
    return result[:3] if result[0] == "rising" else result[:2]
