from __future__ import annotations

import pickle

import pytest

from firesteel.common.errors import TaskFailure
from firesteel.jobmaster.client_channels import ClientChannels
from firesteel.jobmaster.metrics import FailedAccumulator, JobMetrics, merge_accumulators
from firesteel.jobmaster.model.events import ClientConsumed
from firesteel.jobmaster.model.instructions import SendToSlot
from firesteel.jobmaster.model.story import Story
from firesteel.runtime.model import messages
from firesteel.runtime.model.messages import ClientPayload, MetricReport


def test_the_latest_value_wins():
    metrics = JobMetrics()
    metrics.report(MetricReport(0, 0, {("v", "op", 0): {"numRecordsIn": 3, "watermark": 5}}))
    metrics.report(MetricReport(0, 1, {("v", "op", 1): {"numRecordsIn": 10}, ("v", "", 1): {"busy": 0.5}}))
    metrics.report(MetricReport(0, 0, {("v", "op", 0): {"numRecordsIn": 4}}))
    known = metrics.snapshot()
    assert known.values("v", "op", 0) == {"numRecordsIn": 4, "watermark": 5}
    assert known.values("v", "op", 7) == known.values("v", "other", 0) == known.values("w", "op", 0) == {}
    assert known.by_scope() == {
        ("v", "op", 0): {"numRecordsIn": 4, "watermark": 5},
        ("v", "op", 1): {"numRecordsIn": 10},
        ("v", "", 1): {"busy": 0.5},
    }


def test_a_new_attempt_forgets_the_old_one():
    metrics = JobMetrics()
    metrics.report(MetricReport(0, 0, {("v", "op", 0): {"n": 3}}))
    metrics.report(MetricReport(1, 0, {("v", "op", 1): {"n": 1}}))
    metrics.report(MetricReport(0, 0, {("v", "op", 0): {"n": 4}}))
    assert metrics.snapshot().by_scope() == {("v", "op", 1): {"n": 1}}


def test_accumulators_are_added():
    merged: dict[str, object] = {}
    merge_accumulators(merged, {"n": 1, "list": [1], "set": {1}, "average": 0.5, "histogram": {"a": {"b": 1}}})
    merge_accumulators(merged, {"n": 2, "list": [2], "set": {2}, "average": 0.5, "histogram": {"a": {"b": 2}}})
    assert merged == {"n": 3, "list": [1, 2], "set": {1, 2}, "average": 1.0, "histogram": {"a": {"b": 3}}}


def test_accumulators_of_the_job_of_a_vertex_and_of_a_task():
    metrics = JobMetrics()
    metrics.report(MetricReport(0, 0, {}, {("v", 0): {"n": 1}, ("w", 0): {"n": 10}}))
    metrics.report(MetricReport(0, 1, {}, {("v", 1): {"n": 2}}))
    metrics.report(MetricReport(0, 0, {}, {("v", 0): {"n": 3}}))
    known = metrics.snapshot()
    assert known.accumulators() == {"n": 15}
    assert (known.accumulators("v"), known.accumulators("w")) == ({"n": 5}, {"n": 10})
    assert (known.task_accumulators("v", 0), known.task_accumulators("v", 2)) == ({"n": 3}, {})
    metrics.ended(messages.SlotStopped(0, 1, {("v", 1): {"n": 4}}))
    assert metrics.snapshot().accumulators() == {"n": 17}
    metrics.begin_attempt()
    assert metrics.snapshot().accumulators() == {}
    assert known.accumulators() == {"n": 15}, "what was taken before stays as it was"


def test_accumulators_that_cannot_be_added_say_so():
    merged: dict[str, object] = {"n": 1}
    merge_accumulators(merged, {"n": "one"})
    merge_accumulators(merged, {"n": 1})
    failed = merged["n"]
    assert isinstance(failed, FailedAccumulator)
    assert failed.name == "n"


def test_channels_do_not_mix_and_numbers_are_per_subtask():
    channels = ClientChannels()

    def receive(channel, subtask, sequence):
        ready = channels.receive(subtask, ClientPayload(0, channel, subtask, sequence, None))
        return [(item.channel, item.subtask, item.sequence) for item in ready]

    assert receive("a", 0, 0) == [("a", 0, 0)]
    assert receive("b", 0, 0) == [("b", 0, 0)]
    assert receive("a", 1, 2) == []
    assert receive("a", 1, 0) == [("a", 1, 0)]
    assert receive("a", 1, 2) == []
    assert receive("a", 1, 1) == [("a", 1, 1), ("a", 1, 2)]
    acknowledged = SendToSlot(0, 1, messages.ClientAck("a", 1, 2))
    assert channels.consumed(ClientConsumed(0, "a", 1, 2)) == [acknowledged]
    for channel, subtask, sequence in (("a", 1, 1), ("a", 1, 3), ("c", 0, 0)):
        assert channels.consumed(ClientConsumed(0, channel, subtask, sequence)) == []


@pytest.mark.parametrize(
    "message",
    [
        messages.RegisterSlot(1, 2, "h", ("h", 5), 9, "e"),
        messages.TaskStateChanged(1, "v", 0, "FAILED", TaskFailure("x")),
        messages.ClientPayload(1, "print", 0, 0, [1]),
        messages.MetricReport(1, 0, {("v", "", 0): {"n": 1}}),
        messages.Deploy(1, {0: ("h", 5)}, 1),
        messages.AddSplits("op", 0, (1,)),
        messages.Shutdown(),
    ],
)
def test_messages_are_values_that_survive_pickling(message):
    assert pickle.loads(pickle.dumps(message, protocol=5)) == message


def test_a_story_keeps_the_last_entries():
    story = Story(size=2)
    for number in range(5):
        story.add(number, f"event {number}")
    assert [entry.number for entry in story.entries()] == [3, 4]
