"""Groups the clicks of each visitor into sessions: a session ends after half an hour without a click."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import datetime, timezone

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment, TimeWindow
from firesteel.datastream.window import EventTimeSessionWindows

Click = tuple[str, str, str]

CLICKS: list[Click] = [
    ("09:00", "ann", "/home"),
    ("09:02", "bob", "/home"),
    ("09:10", "ann", "/shoes"),
    ("10:05", "bob", "/cart"),
    ("09:35", "ann", "/cart"),  # out of order; joins the session that began at 09:00
    ("10:50", "ann", "/home"),
    ("10:20", "bob", "/pay"),
    ("11:05", "ann", "/help"),
]


class Describe(ProcessWindowFunction[Click, str, str, TimeWindow]):
    """One line per session, once it is complete."""

    def __init__(self, gap_minutes: int):
        self._gap = gap_minutes * 60_000

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Click]
    ) -> Iterable[str]:
        window = context.window()
        first, last = (datetime.fromtimestamp(t / 1000, timezone.utc) for t in (window.start, window.end - self._gap))
        pages = [page for _, _, page in sorted(elements)]
        yield f"{key}  {first:%H:%M}-{last:%H:%M}  {' '.join(pages)}"


def event_time(click: Click) -> int:
    return int(datetime.fromisoformat(f"2026-01-01T{click[0]}:00+00:00").timestamp() * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gap", type=int, default=30, metavar="MINUTES", help="what ends a session (default: 30)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1)).with_timestamp_assigner(event_time)
    (
        env.from_collection(CLICKS)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click[1])
        .window(EventTimeSessionWindows.with_gap(Time.minutes(options.gap)))
        .process(Describe(options.gap))
        .print()
    )
    env.execute("sessions")


if __name__ == "__main__":
    main()
