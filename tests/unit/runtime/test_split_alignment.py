"""Watermark alignment within a reader: splits that are too far ahead pause, and are not idle for it."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.operators.base import StateInitializationContext
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.spi.source import InputStatus, Source, SourceReader
from firesteel.testing import FakeClock
from firesteel.testing.operator_context import FakeOperatorContext
from firesteel.testing.source import TestingSplit

IDLE_MS = 1000


class Reader(SourceReader):
    can_pause_splits = True

    def __init__(self):
        self.next = {}
        self.paused = set()
        self.told = []

    def poll_next(self, output, max_records):
        for split, times in self.next.items():
            if split not in self.paused and times:
                output.collect(split, ["x"] * len(times), list(times))
                times.clear()
        return InputStatus.NOTHING_AVAILABLE

    def pause_or_resume_splits(self, to_pause, to_resume):
        self.told.append((sorted(to_pause), sorted(to_resume)))
        self.paused = (self.paused | set(to_pause)) - set(to_resume)

    def add_splits(self, splits):
        self.next.update({split.split_id: [] for split in splits})

    def notify_no_more_splits(self):
        pass

    def snapshot_state(self, checkpoint_id):
        return []


class Fixed(Source):
    def __init__(self, reader):
        self.reader = reader

    def get_boundedness(self):
        raise NotImplementedError

    def create_enumerator(self, context):
        raise NotImplementedError

    def create_reader(self, context):
        return self.reader


class Subtask:
    def __init__(self):
        self.reader = Reader()
        self.clock = FakeClock()
        self.context = FakeOperatorContext(None, self.clock)
        strategy = (
            WatermarkStrategy.for_monotonous_timestamps()
            .with_idleness(Duration.of_millis(IDLE_MS))
            .with_watermark_alignment("group", Duration.of_millis(100), Duration.of_millis(50))
        )
        self.operator = SourceOperator(Fixed(self.reader), strategy, 200)
        self.reports = []
        self.operator.connect(0, 1, lambda: None, self.reports.append, lambda event: None)
        self.context.operator_state = OperatorStateBackend()
        self.operator.initialize_state(StateInitializationContext(self.context, None))
        self.operator.open(self.context)
        self.operator.add_splits([TestingSplit("slow"), TestingSplit("fast")])

    def read(self, **times):
        for split, time in times.items():
            self.reader.next[split].append(time)
        self.operator.poll()
        self.operator.emit_periodic()


def test_the_split_that_is_ahead_pauses_and_resumes():
    subtask = Subtask()
    subtask.read(slow=10, fast=500)
    assert subtask.reader.told == [], "nobody has said yet how far to go"
    subtask.operator.align(110)
    assert subtask.reader.told == [(["fast"], [])]
    assert subtask.operator.has_data(0.0), "the slow one is read on"
    subtask.read(slow=20, fast=510)
    assert list(subtask.reader.next.values()) == [[], [510]]
    subtask.operator.align(510)
    assert subtask.reader.told[1:] == [([], ["fast"])]
    subtask.operator.poll()
    assert subtask.reader.next == {"slow": [], "fast": []}


def test_a_split_that_runs_ahead_later_pauses_with_its_watermark():
    subtask = Subtask()
    subtask.operator.align(100)
    subtask.read(slow=10, fast=50)
    assert subtask.reader.told == []
    subtask.read(fast=200)
    assert subtask.reader.told == [(["fast"], [])]


def test_who_waits_is_not_idle():
    subtask = Subtask()
    subtask.read(slow=10, fast=500)
    subtask.operator.align(110)
    for time in range(11, 16):
        subtask.clock.advance(IDLE_MS // 2)
        subtask.read(slow=time)
    assert subtask.context.watermarks[-1] == 14, "the paused one does not count as idle, nor does it hold back"
    subtask.operator.report_alignment()
    assert subtask.reports[-1] == 14


def test_a_reader_that_waits_as_a_whole_is_not_idle():
    subtask = Subtask()
    subtask.read(slow=400, fast=500)
    subtask.operator.align(110)
    assert subtask.operator.is_ahead
    subtask.clock.advance(5 * IDLE_MS)
    subtask.operator.emit_periodic()
    subtask.operator.report_alignment()
    assert subtask.reports[-1] != MAX_WATERMARK
