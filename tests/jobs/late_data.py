"""B10: allowed lateness of 5 ms: late records fire their window again; later ones go to a side output, or are counted.

[0, 10) fires at watermark 9, and again with each late record until watermark 14 takes it away.

As a batch nothing is late, as there is no watermark before the end: every window fires once, with all its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream import DataStream, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows
from tests.support.jobs.punctuated import WATERMARK, timeline

LATE = OutputTag("late")

RECORDS = [
    ("a", 1, 3),
    ("b", 10, 4),
    (WATERMARK, None, 9),
    ("a", 2, 7),  # late by two: fires again
    ("c", 100, 1),  # late, the first of its key: its window opens and fires at once
    (WATERMARK, None, 13),
    ("b", 20, 9),  # still allowed
    (WATERMARK, None, 14),
    ("a", 4, 9),  # too late by one
    ("b", 40, 12),  # behind the watermark, but its window is open
    (WATERMARK, None, 30),
    ("b", 80, 2),  # too late by far
]


class Sum(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str):
        self.name = name

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield self.name, key, context.window().start, sum(value for _, value, _ in elements)


def build(env: StreamExecutionEnvironment) -> DataStream:
    keyed = timeline(env, RECORDS).key_by(lambda record: record[0])
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    lenient = keyed.window(windows).allowed_lateness(5).side_output_late_data(LATE).process(Sum("lateness 5"))
    late = lenient.get_side_output(LATE).map(lambda record: ("late", *record))
    strict = keyed.window(windows).process(Sum("no lateness"))
    return lenient.union(late, strict)


ACCUMULATORS = {"numLateRecordsDropped": 5}
"""The strict window drops a at 7, c at 1, b at 9, a at 9 and b at 2; the lenient one puts two of them aside."""
BATCH_ACCUMULATORS = {"numLateRecordsDropped": 0}


def key_of(result: Any) -> Any:
    return result[0], result[1]
