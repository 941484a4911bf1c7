"""Joins views of advertisements with clicks: each click with the views before it, and what each hour had of both."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import CoGroupFunction, DataStream, ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows

Event = tuple[str, str, int]

VIEWS: list[Event] = [("ann", "shoes", 5), ("bob", "lamps", 10), ("ann", "boats", 20), ("cat", "shoes", 70)]
CLICKS: list[Event] = [("ann", "shoes", 25), ("bob", "lamps", 55), ("cat", "boats", 80)]  # who, what, minute


class Attribute(ProcessJoinFunction[Event, Event, str]):
    """Called with each view and click of one person within the time."""

    def process_element(self, left: Event, right: Event, ctx: ProcessJoinFunction.Context) -> Iterator[str]:
        minutes = (ctx.get_right_timestamp() - ctx.get_left_timestamp()) // 60_000
        yield f"{right[0]} clicked {right[1]} {minutes} minutes after a view of {left[1]}"


class CountBoth(CoGroupFunction[Event, Event, str]):
    """Called with all views and clicks of an advertisement in an hour; an outer join, since either may be empty."""

    def co_group(self, first: list[Event], second: list[Event]) -> Iterator[str]:
        what, minute = (first or second)[0][1:]
        yield f"hour {minute // 60}: {what} had {len(first)} views and {len(second)} clicks"


def with_event_time(stream: DataStream[Event]) -> DataStream[Event]:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(5))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda event: event[2] * 60_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--within", type=int, default=30, metavar="MINUTES", help="views before a click (default: 30)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    views, clicks = (with_event_time(env.from_collection(events)) for events in (VIEWS, CLICKS))
    (
        views.key_by(lambda view: view[0])
        .interval_join(clicks.key_by(lambda click: click[0]))
        .between(Duration.of_minutes(0), Duration.of_minutes(options.within))
        .process(Attribute())
        .print()
    )
    (
        views.co_group(clicks)
        .where(lambda view: view[1])
        .equal_to(lambda click: click[1])
        .window(TumblingEventTimeWindows.of(Duration.of_hours(1)))
        .apply(CountBoth())
        .print()
    )
    env.execute("advertisements")


if __name__ == "__main__":
    main()
