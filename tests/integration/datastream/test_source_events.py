"""What sources and their enumerators can do besides handing out splits, in whole jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from firesteel.common import Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import OutputTag
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SplitEnumerator,
)


@dataclass(frozen=True)
class Word:
    split_id: str


class AskingEnumerator(SplitEnumerator[Word]):
    """Looks its words up in another thread, and gives one to each reader that says it is hungry."""

    def __init__(self, context):
        self._context = context
        self._words = None
        self._hungry = []

    def start(self):
        self._context.call_async(lambda: ["a", "b", "c"], self._found)

    def _found(self, words, error):
        assert error is None
        self._words = list(words)
        self._feed()

    def handle_split_request(self, subtask, host):
        raise AssertionError("nobody asks")

    def add_splits_back(self, splits, subtask):
        raise AssertionError("nobody fails")

    def handle_source_event(self, subtask, event):
        assert event == "hungry"
        self._hungry.append(subtask)
        self._feed()

    def _feed(self):
        while self._words is not None and self._hungry:
            subtask = self._hungry.pop(0)
            if self._words:
                word = self._words.pop(0)
                self._context.send_event_to_reader(subtask, f"here is {word}")
                self._context.assign_split(Word(word), subtask)
            else:
                self._context.signal_no_more_splits(subtask)


class HungryReader(SourceReader[Word]):
    def __init__(self, context):
        self._context = context
        self._splits = []
        self._is_last = False
        self._said = []

    def start(self):
        self._context.get_metrics_group().counter("meals")
        self._context.send_source_event("hungry")

    def poll_next(self, output, max_records):
        if self._splits:
            split = self._splits.pop(0)
            output.collect(split.split_id, [(split.split_id, self._said.pop(0))])
            output.emit_side(CRUMBS, [f"crumbs of {split.split_id}"])
            output.release_split(split.split_id)
            self._context.get_metrics_group().counter("meals").inc()
            self._context.send_source_event("hungry")
        return InputStatus.END_OF_INPUT if self._is_last else InputStatus.NOTHING_AVAILABLE

    def add_splits(self, splits):
        self._splits += splits

    def handle_source_event(self, event):
        self._said.append(event)

    def notify_no_more_splits(self):
        self._is_last = True

    def snapshot_state(self, checkpoint_id):
        return list(self._splits)


CRUMBS = OutputTag("crumbs", Types.STRING())


class Dinner(Source[Word]):
    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self, context):
        return AskingEnumerator(context)

    def create_reader(self, context):
        return HungryReader(context)


@pytest.mark.parametrize("settings", [{}, {"execution.exchange": "spark"}], ids=["pipelined", "epochs"])
def test_readers_and_enumerator_talk_to_each_other(in_process_env, settings):
    env = in_process_env(2, settings)
    dinner = env.from_source(Dinner(), WatermarkStrategy.no_watermarks(), "dinner")
    crumbs = dinner.get_side_output(CRUMBS).map(lambda text: (text, ""))
    with dinner.union(crumbs).execute_and_collect() as results:
        assert sorted(results) == [
            *((word, f"here is {word}") for word in "abc"),
            *((f"crumbs of {word}", "") for word in "abc"),
        ]
