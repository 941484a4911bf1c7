"""The semantics transcripts once more, on Spark: all cases in one job, each with a window operator of its own.

Records and watermarks of a case come from one subtask, in line, and go to two. What an operator behind the window sees
as its watermark says between which watermarks a result was emitted: that is as fine as results are told apart here,
and ``expect`` steps between the same two watermarks are taken together. ``state`` and ``dropped`` can be seen in the
operator alone, and processing time cannot be moved here: those steps and cases stay with the unit tests.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.datastream import DataStream, ProcessFunction
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.testing.operator_context import FAKE_RUNTIME, FakeOperatorContext
from firesteel.testing.transcript import LATE_TAG, TranscriptCase, load_transcripts
from firesteel.testing.transcript_parts import aggregation_of, assigner_of, describe_window, evictor_of, trigger_of

PARALLELISM = 2
WATERMARK = "\0watermark"
Buckets = dict[tuple[str, int], list[str]]


def _on_spark(case: TranscriptCase) -> bool:
    steps = {name for step in case.transcript for name in step}
    return not steps & {"processing_time", "raises"} and "ProcessingTime" not in str((case.window, case.trigger))


CASES = [case for case in load_transcripts(Path(__file__).parents[1] / "semantics") if _on_spark(case)]


def _time(watermark: Any) -> int:
    return MAX_WATERMARK if watermark == "max" else int(watermark)


def _records(case: TranscriptCase) -> list[tuple[Any, Any, int | None]]:
    records: list[tuple[Any, Any, int | None]] = []
    for step in case.transcript:
        if "input" in step:
            records += [(key, value, timestamp) for key, value, timestamp in step["input"]]
        elif "watermark" in step:
            records.append((WATERMARK, None, _time(step["watermark"])))
    return records


class FromRecords(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[1][0] == WATERMARK:
            output.emit_watermark(event[1][2])

    def on_periodic_emit(self, output: Any) -> None:
        """Nothing: this generator is punctuated."""


class Bucket(ProcessFunction):
    """Adds the case and the watermark behind which a result came."""

    def __init__(self, case: str, kind: str):
        self.case = case
        self.kind = kind

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.kind == "late":
            described = [value[1][0], value[1][1], ctx.timestamp()]
        else:
            key, result, window = value
            described = [key, result, describe_window(window)]
        yield self.case, self.kind, ctx.timer_service().current_watermark(), repr(described)


def _windows(stream: DataStream, case: TranscriptCase) -> list[DataStream]:
    """The case's window operator on a stream of its records, and behind it what it emits."""
    pairs = stream.map(lambda record: (record[1][0], record[1][1])).set_parallelism(1)
    assigner = assigner_of(case.window)
    windowed: Any = (
        pairs.window_all(assigner) if case.all_windows else pairs.key_by(lambda pair: pair[0]).window(assigner)
    )
    if case.trigger is not None:
        windowed.trigger(trigger_of(case.trigger))
    if case.evictor is not None:
        windowed.evictor(evictor_of(case.evictor))
    windowed.allowed_lateness(case.allowed_lateness)
    if case.late_output:
        windowed.side_output_late_data(LATE_TAG)
    kind, function, window_function = aggregation_of(case.aggregation, case.all_windows)
    if kind == "reduce":
        results = windowed.reduce(function, window_function)
    elif kind == "aggregate":
        results = windowed.aggregate(function, window_function)
    else:
        results = windowed.process(window_function)
    parallelism = 1 if case.all_windows else PARALLELISM
    streams = [results.process(Bucket(case.id, "expect")).set_parallelism(parallelism)]
    if case.late_output:
        late = results.get_side_output(LATE_TAG).map(lambda pair: (None, pair)).set_parallelism(parallelism)
        streams.append(late.process(Bucket(case.id, "late")).set_parallelism(parallelism))
    return streams


def _run_all(env: Any) -> dict[str, Buckets]:
    steps = [(case.id, record) for case in CASES for record in _records(case)]
    source = env.from_collection(steps)
    strategy = WatermarkStrategy.for_generator(FromRecords).with_timestamp_assigner(lambda step, _: step[1][2])
    streams: list[DataStream] = []
    for case in CASES:
        own = source.filter(lambda step, name=case.id: step[0] == name).set_parallelism(1)
        if all(timestamp is not None for _, _, timestamp in _records(case)):
            own = own.assign_timestamps_and_watermarks(strategy)
        own = own.filter(lambda step: step[1][0] != WATERMARK).set_parallelism(1)
        streams += _windows(own, case)
    found: dict[str, Buckets] = {case.id: defaultdict(list) for case in CASES}
    for name, kind, watermark, described in streams[0].union(*streams[1:]).execute_and_collect("transcripts"):
        found[name][kind, watermark].append(described)
    return found


def _expected(case: TranscriptCase) -> Buckets:
    """What the transcript says must come between two watermarks; results of a watermark come before it is passed on."""
    buckets: Buckets = defaultdict(list)
    behind = MIN_TIMESTAMP
    fired: int | None = None
    for step in case.transcript:
        if "watermark" in step:
            # results of this watermark, told by the next expect, are emitted while the one before it still counts
            behind, fired = (behind if fired is None else fired), _time(step["watermark"])
        elif "input" in step and fired is not None:
            behind, fired = fired, None
        for kind in ("expect", "late"):
            if kind in step:
                buckets[kind, behind] += map(repr, step[kind])
    return buckets


def _at_the_end(case: TranscriptCase) -> Buckets:
    """What is left when a transcript ends, which the end of the input fires."""
    context = FakeOperatorContext((lambda _: 0) if case.all_windows else (lambda record: record[0]))
    operator = case.spec().create(FAKE_RUNTIME)
    operator.open(context)
    behind = MIN_TIMESTAMP
    for key, value, timestamp in _records(case):
        if key == WATERMARK:
            assert timestamp is not None
            operator.process_watermark(timestamp)
            behind = timestamp
        else:
            operator.process_batch([(key, value)], None if timestamp is None else [timestamp])
    context.take_output()
    operator.process_watermark(MAX_WATERMARK)
    left = [repr([key, result, describe_window(window)]) for (key, result, window), _ in context.take_output()]
    operator.close()
    return {("expect", behind): left}


def _normal(buckets: Buckets) -> dict[tuple[str, int], list[str]]:
    return {key: sorted(values) for key, values in buckets.items() if values}


@pytest.fixture(scope="module")
def found(spark_context: object) -> dict[str, Buckets]:
    from firesteel.common import Configuration
    from firesteel.datastream import StreamExecutionEnvironment

    config = Configuration().set_string("spark.master", "local[4]")
    return _run_all(StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(PARALLELISM))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_transcript_on_spark(case: TranscriptCase, found: dict[str, Buckets]) -> None:
    expected = _expected(case)
    for key, left in _at_the_end(case).items():
        expected[key] += left
    assert _normal(found[case.id]) == _normal(expected)


def test_most_cases_run_on_spark() -> None:
    everything = load_transcripts(Path(__file__).parents[1] / "semantics")
    assert len(CASES) > 0.75 * len(everything)


def test_a_wrong_transcript_would_be_noticed(found: dict[str, Buckets]) -> None:
    """Swapping what two cases expect, or moving a result behind another watermark, makes a difference."""
    telling = [case for case in CASES if _normal(_expected(case))]
    assert len(telling) > 0.8 * len(CASES)
    for case in telling:
        moved = {(kind, behind + 1): values for (kind, behind), values in _expected(case).items()}
        assert _normal(found[case.id]) != _normal(moved)
