"""The two phases of a sink, step by step."""

from __future__ import annotations

import pytest

from firesteel.connectors import CollectSink, PrintSink
from firesteel.datastream import CheckpointedFunction, CheckpointListener, SinkFunction
from firesteel.datastream.state import ListStateDescriptor
from firesteel.process import fault_points
from firesteel.spi.sink import Committer, Sink, SinkWriter
from firesteel.testing import HarnessSnapshot, SinkHarness


class Ledger(Sink):
    """Writes down what is called."""

    def __init__(self):
        self.story = []
        self.committed = []
        self.fail_commit = False

    def create_writer(self, context):
        self.story.append("create")
        return LedgerWriter(self, [])

    def restore_writer(self, context, state):
        self.story.append(f"restore {state}")
        return LedgerWriter(self, list(state))

    def create_committer(self):
        return LedgerCommitter(self)

    def take_story(self):
        story, self.story = self.story, []
        return story


class LedgerWriter(SinkWriter):
    def __init__(self, ledger, open_records):
        self.ledger = ledger
        self.open_records = open_records
        self.done = []

    def write_batch(self, values, timestamps):
        self.open_records += values

    def flush(self, end_of_input):
        self.ledger.story.append("end" if end_of_input else "flush")
        keep = 0 if end_of_input else 1
        self.done += self.open_records[: len(self.open_records) - keep]
        del self.open_records[: len(self.open_records) - keep]

    def prepare_commit(self):
        done, self.done = self.done, []
        return [tuple(done)] if done else []

    def snapshot_state(self, checkpoint_id):
        self.ledger.story.append(f"snapshot {checkpoint_id}")
        return list(self.open_records)

    def notify_checkpoint_complete(self, checkpoint_id):
        self.ledger.story.append(f"complete {checkpoint_id}")

    def close(self):
        self.ledger.story.append("close")


class LedgerCommitter(Committer):
    def __init__(self, ledger):
        self.ledger = ledger

    def commit(self, committables):
        if self.ledger.fail_commit:
            raise OSError("no")
        self.ledger.committed += committables
        self.ledger.story.append(f"commit {committables}")

    def recommit(self, committables):
        self.ledger.story.append(f"recommit {committables}")

    def close(self):
        self.ledger.story.append("close committer")


@pytest.fixture
def ledger():
    return Ledger()


def test_a_record_from_writing_to_committing(ledger):
    with SinkHarness(ledger) as sink:
        sink.process_elements([1, 2, 3])
        sink.snapshot(1)
        sink.process_element(4)
        sink.notify_checkpoint_complete(1)
    assert ledger.take_story() == [
        "create",
        "flush",
        "snapshot 1",
        "commit [(1, 2)]",
        "complete 1",
        "close",
        "close committer",
    ]


def test_what_was_prepared_goes_with_the_next_checkpoint_that_completes(ledger):
    sink = SinkHarness(ledger)
    sink.process_elements([1, 2])
    sink.snapshot(1)
    sink.notify_checkpoint_aborted(1)
    sink.process_element(3)
    snapshot = sink.snapshot(2)
    sink.process_element(4)
    sink.snapshot(3)
    assert ledger.committed == []
    sink.notify_checkpoint_complete(2)
    assert ledger.committed == [(1,), (2,)]
    sink.notify_checkpoint_complete(2)
    assert ledger.committed == [(1,), (2,)]
    sink.notify_checkpoint_complete(3)
    assert ledger.committed == [(1,), (2,), (3,)]
    sink.close()
    # the snapshot has what was not committed when it was taken, whichever checkpoint it was prepared for
    ledger.take_story()
    SinkHarness(ledger).initialize_state(snapshot).open().close()
    assert ledger.take_story()[:2] == ["recommit [(1,), (2,)]", "restore [3]"]


def test_committed_work_leaves_the_state(ledger):
    sink = SinkHarness(ledger)
    sink.process_elements([1, 2])
    sink.snapshot(1)
    sink.notify_checkpoint_complete(1)
    snapshot = sink.snapshot(2)
    sink.close()
    ledger.take_story()
    SinkHarness(ledger).initialize_state(snapshot).open().close()
    assert ledger.take_story()[0] == "restore [2]"


def test_committables_and_writer_state_are_dealt_out(ledger):
    snapshots = []
    for subtask in range(2):
        sink = SinkHarness(ledger, subtask=subtask, parallelism=2)
        sink.process_elements([subtask * 10, subtask * 10 + 1])
        snapshots.append(sink.snapshot(1))
        sink.close()
    ledger.take_story()
    whole = HarnessSnapshot.combine(*snapshots)
    for subtask in range(3):
        SinkHarness(ledger, subtask=subtask, parallelism=3).initialize_state(whole).open().close()
    begun = sorted(entry for entry in ledger.take_story() if entry.startswith("re"))
    assert begun == ["recommit [(0,)]", "recommit [(10,)]", "restore [11]", "restore [1]", "restore []"]


def test_at_the_end_with_checkpoints_the_last_one_commits(ledger):
    sink = SinkHarness(ledger)
    sink.process_elements([1, 2])
    sink.finish()
    assert ledger.committed == []
    sink.snapshot(7)
    assert "flush" not in ledger.story
    sink.notify_checkpoint_complete(7)
    assert ledger.committed == [(1, 2)]
    sink.close()


def test_at_the_end_without_checkpoints_everything_is_committed(ledger):
    sink = SinkHarness(ledger, checkpointing=False)
    sink.process_elements([1, 2])
    sink.snapshot(1)  # a savepoint, of which nobody says that it is complete
    sink.process_elements([3])
    sink.finish()
    assert ledger.committed == [(1,), (2, 3)]
    sink.close()


def test_a_commit_that_fails_fails_the_task_and_is_not_forgotten(ledger):
    sink = SinkHarness(ledger)
    sink.process_elements([1, 2])
    sink.snapshot(1)
    ledger.fail_commit = True
    with pytest.raises(OSError, match="no"):
        sink.notify_checkpoint_complete(1)
    ledger.fail_commit = False
    sink.notify_checkpoint_complete(2)
    assert ledger.committed == [(1,)]
    sink.close()


@pytest.mark.parametrize(("point", "committed"), [("sink.commit", []), ("sink.committed", [(1,)])])
def test_fault_points(ledger, point, committed):
    sink = SinkHarness(ledger)
    sink.process_elements([1, 2])
    snapshot = sink.snapshot(1)
    fault_points.arm(f"{point}=raise")
    try:
        with pytest.raises(OSError, match=point):
            sink.notify_checkpoint_complete(1)
        assert ledger.committed == committed
        restored = SinkHarness(ledger).initialize_state(snapshot)
        with pytest.raises(OSError, match=point):
            restored.open()
    finally:
        fault_points.arm("")
        sink.close()
        restored.close()


def test_a_snapshot_that_fails_half_way_loses_nothing(ledger):
    sink = SinkHarness(ledger).open()
    sink.process_elements([1, 2])
    writer = sink._chained.operator._writer
    writer.snapshot_state = lambda checkpoint_id: 1 / 0
    with pytest.raises(ZeroDivisionError):
        sink.snapshot(1)
    del writer.snapshot_state
    sink.snapshot(2)
    sink.notify_checkpoint_complete(2)
    assert ledger.committed == [(1,)]
    sink.close()


def test_collect_and_print_send_at_once():
    for sink, payload in ((CollectSink("c"), ("c", [5])), (PrintSink(), ("print", ("stdout", ["5"])))):
        with SinkHarness(sink) as harness:
            harness.process_element(5)
            assert harness.sent == [payload]
            harness.snapshot(1)
            harness.notify_checkpoint_complete(1)
            assert harness.sent == [payload]


class Buffering(SinkFunction, CheckpointedFunction, CheckpointListener):
    """Flink's own example of operator state: writes when it has gathered enough."""

    def __init__(self, written):
        self.written = written
        self.buffer = []
        self.complete = []

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("buffered"))
        self.origin = context.get_restored_checkpoint_id()
        self.buffer += self.state.get()

    def invoke(self, value, context=None):
        self.buffer.append(value)
        if len(self.buffer) == 3:
            self.written += self.buffer
            self.buffer = []

    def snapshot_state(self, context):
        self.state.update(self.buffer)

    def notify_checkpoint_complete(self, checkpoint_id):
        self.complete.append(checkpoint_id)


def test_a_sink_function_with_state_of_its_own():
    written = []
    with SinkHarness(Buffering(written)) as sink:
        sink.process_elements([1, 2, 3, 4, 5])
        snapshot = sink.snapshot(9)
    assert written == [1, 2, 3]
    again = Buffering(written)
    with SinkHarness(again).initialize_state(snapshot) as sink:
        sink.process_element(6)
        sink.notify_checkpoint_complete(10)
    assert written == [1, 2, 3, 4, 5, 6]
    assert (again.origin, again.complete) == (9, [10])
