"""A transactional Kafka sink through failures: a consumer of committed records sees each once, and is not held up.

The jobs are driven step by step (SinkJob): what dies when, and who hears of what, the tests say.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from firesteel.connectors.kafka.sink.committer import TransactionLostError
from firesteel.connectors.kafka.sink.producer import KafkaWriteError
from firesteel.connectors.kafka.sink.transactions import Outcome, PreparedTransaction, TransactionCoordinators
from firesteel.process import fault_points
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import eventually
from tests.support.jobs.sink_jobs import SinkJob, committables_of
from tests.support.services.kafka_sink_jobs import ExactlyOnceJob, fresh_prefix, is_unblocked, numbers, sink_builder
from tests.support.services.kafka_topics import fresh_topic

ROOT = Path(__file__).parents[3]
DEADLINE_S = 60.0


@pytest.fixture
def topic(kafka):
    return fresh_topic(kafka, 2)


@pytest.fixture
def start(kafka, topic):
    """Starts jobs that write to the topic with one prefix, and ends them with the test."""
    jobs, prefix = [], fresh_prefix()

    def begin(parallelism=1, restored=None, **settings):
        jobs.append(ExactlyOnceJob(kafka, topic, prefix, parallelism, restored, **settings))
        return jobs[-1]

    begin.prefix = prefix
    yield begin
    for job in jobs:
        job.close()


@pytest.fixture
def coordinators(kafka):
    client = TransactionCoordinators({"bootstrap.servers": kafka.bootstrap_servers})
    yield client
    client.close()


@pytest.fixture
def armed():
    yield fault_points.arm
    fault_points.arm("")


@pytest.fixture
def expect(kafka, topic):
    """Waits until a consumer sees the first so many numbers, and has seen all there is."""

    def check(count):
        def is_seen():
            assert is_unblocked(kafka, topic)
            assert numbers(kafka, topic) == list(range(count))

        eventually(is_seen, DEADLINE_S)

    return check


def has_cleaned(job):
    """Waits until a job that has just started has aborted what it found with its prefix."""
    cleaning = job.subtasks[0]._chained.operator._writer._cleaning._thread
    eventually(lambda: not cleaning.is_alive(), DEADLINE_S)


def test_records_are_visible_once_the_checkpoint_is_complete(kafka, topic, start, expect):
    job = start()
    job.write(3)
    assert numbers(kafka, topic) == []
    snapshot = job.snapshot()
    job.write(2)
    assert numbers(kafka, topic) == []
    job.complete(snapshot)
    eventually(lambda: numbers(kafka, topic) == [0, 1, 2])
    eventually(job.subtasks[0]._chained.operator.has_room)
    eventually(lambda: numbers(kafka, topic, "read_uncommitted") == [0, 1, 2, 3, 4])
    job.finish()
    expect(5)


STEPS = ["before snapshot", "after snapshot", "before commit", "during commit", "after commit", "later transaction"]


@pytest.mark.parametrize(
    ("crash", "way"),
    [*((step, "vanished") for step in STEPS), ("after snapshot", "closed"), ("before commit", "closed")],
)
def test_a_crash_at_every_step(kafka, topic, start, expect, armed, crash, way):
    job = start(2)
    job.write(6)
    job.checkpoint()
    job.write(4)
    if crash != "before snapshot":
        snapshot = job.snapshot()
        job.write(3)
    if crash == "before commit":
        armed("sink.commit=raise")
        with pytest.raises(OSError, match="fault injected"):
            job.complete(snapshot)
    elif crash == "during commit":
        job.complete(snapshot, notify=1)
    elif crash == "after commit":
        job.complete(snapshot)
    elif crash == "later transaction":
        # producers whose transactions the checkpoint has have begun others since
        job.complete(snapshot)
        job.snapshot()
        job.write(5)
    armed("")

    (job.restart if way == "closed" else job.vanish)()

    expect(job.position)
    job.write(20 - job.position)
    job.finish()
    expect(20)


def test_transactions_of_aborted_checkpoints_are_committed_with_the_next(start, expect):
    job = start()
    for _ in range(3):
        job.write(2)
        job.snapshot()
    snapshot = job.snapshot()
    assert len(committables_of(snapshot)) == 3
    job.complete(snapshot)
    expect(6)
    # their producers are used again
    writer = job.subtasks[0]._chained.operator._writer
    made = writer._pool.made
    for _ in range(4):
        job.write(1)
        job.checkpoint()
    assert writer._pool.made == made
    expect(10)


def test_without_records_there_is_no_transaction(start, coordinators):
    job = start()
    job.checkpoint()
    assert committables_of(job.snapshot()) == []
    job.write(1)
    job.checkpoint()
    snapshot = job.snapshot()
    assert committables_of(snapshot) == []
    assert coordinators.list_ongoing(start.prefix) == []


@pytest.mark.parametrize(("before", "after", "notified"), [(1, 3, 0), (3, 1, 0), (3, 1, 1), (2, 3, 1)])
def test_another_parallelism_commits_what_was_prepared(start, expect, before, after, notified):
    job = start(before)
    job.write(4)
    job.snapshot()
    job.write(5)
    snapshot = job.snapshot()
    job.write(2)
    job.complete(snapshot, notify=notified)
    job.vanish(after)
    expect(9)
    job.write(4)
    job.finish()
    expect(13)


def test_a_savepoint_is_restored_by_another_job(start, expect):
    first = start(2)
    first.write(5)
    snapshot = first.snapshot()
    # the job dies before it hears that the savepoint is there; what it wrote since is of no account
    first.write(3)
    first.kill()
    second = start(1, restored=snapshot)
    expect(5)
    second.write(5)
    second.finish()
    expect(10)


def test_a_savepoint_is_restored_by_a_job_with_a_weaker_guarantee(kafka, topic, start, expect):
    first = start(2)
    first.write(5)
    snapshot = first.snapshot()
    first.kill()
    make_sink = sink_builder(kafka, topic, DeliveryGuarantee.AT_LEAST_ONCE).build
    second = SinkJob(make_sink, 1, "other", restored=snapshot, to_record=str)
    second.write(2)
    second.finish()
    expect(7)


def test_a_restart_without_any_checkpoint(start, expect):
    job = start(2)
    job.write(5)
    job.snapshot()
    job.write(5)
    job.vanish()
    expect(0)
    job.write(4)
    job.finish()
    expect(4)


def test_a_writer_of_the_attempt_before_can_no_longer_write(kafka, topic, start, expect):
    job = start()
    job.write(2)
    job.checkpoint()
    job.write(3)
    zombie = job.subtasks[0]
    job.vanish()
    expect(2)
    zombie.process_element("77")
    with pytest.raises(KafkaWriteError, match="may no longer write"):
        zombie.snapshot(9)
    # it may commit what the checkpoint has, as the restored job has done
    zombie.notify_checkpoint_complete(1)
    job.write(1)
    job.finish()
    expect(3)
    assert 77 not in numbers(kafka, topic)


def test_a_writer_of_the_attempt_before_begins_another_transaction(start, expect, coordinators):
    job = start()
    job.write(2)
    job.checkpoint()
    zombie = job.subtasks[0]
    job.vanish()
    has_cleaned(job)
    zombie.process_element("77")
    eventually(lambda: coordinators.list_ongoing(start.prefix) or False)
    # nobody can get past it until the first checkpoint of the new attempt
    job.write(1)
    job.checkpoint()
    expect(3)


def test_a_killed_process_does_not_hold_up_consumers(kafka, topic, start, expect):
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.support.services.kafka_sink_jobs import ExactlyOnceJob\n"
        f"class Broker: bootstrap_servers = {kafka.bootstrap_servers!r}\n"
        f"job = ExactlyOnceJob(Broker, {topic!r}, {start.prefix!r})\n"
        "job.write(1000); job.checkpoint(); job.write(10); job.snapshot(); job.write(10)\n"
        "job.subtasks[0]._chained.operator._writer.flush(False)\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"open\n"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert not is_unblocked(kafka, topic)

    job = start()
    eventually(lambda: is_unblocked(kafka, topic), DEADLINE_S)
    job.write(5)
    job.finish()
    eventually(lambda: is_unblocked(kafka, topic), DEADLINE_S)
    seen = Counter(numbers(kafka, topic))
    assert seen == Counter(range(1000)) + Counter(range(5))


def test_two_sinks_of_a_job_with_the_same_prefix(kafka, topic, start, expect):
    one, two = start(), start()
    # here each is a job of its own, which takes what it finds at its start for left behind
    has_cleaned(one)
    has_cleaned(two)
    one.write(3)
    two.position = 3
    two.write(3)
    snapshots = one.snapshot(), two.snapshot()
    one.complete(snapshots[0], notify=0)
    two.complete(snapshots[1], notify=0)
    one.vanish()
    has_cleaned(one)
    two.vanish()
    expect(6)


def test_a_prepared_transaction_that_timed_out(kafka, topic, start, coordinators):
    def prepare():
        job = start(transaction_timeout_ms=1000)
        job.write(2)
        try:
            return job, job.snapshot()
        except KafkaWriteError:
            return False  # it was too late for that: the machine had stalled

    job, snapshot = eventually(prepare, DEADLINE_S)
    (prepared,) = committables_of(snapshot)
    eventually(lambda: coordinators.describe(prepared.transactional_id).state == "CompleteAbort", DEADLINE_S)

    with pytest.raises(TransactionLostError, match=r"records are lost.*transaction\.timeout\.ms is 1000 ms"):
        job.complete(snapshot)
    with pytest.raises(TransactionLostError, match=prepared.transactional_id) as caught:
        job.restart()
    assert "ignore_failures_after_transaction_timeout" in caught.value.hint

    job.builder.ignore_failures_after_transaction_timeout().set_property("transaction.timeout.ms", "60000")
    job.restart()
    job.write(2)
    job.finish()
    eventually(lambda: numbers(kafka, topic) == [2, 3], DEADLINE_S)


def test_an_open_transaction_that_timed_out_fails_the_checkpoint(start, coordinators):
    job = start(transaction_timeout_ms=1000)
    job.write(2)
    writer = job.subtasks[0]._chained.operator._writer
    writer.flush(False)
    transactional_id = writer._current().transactional_id
    eventually(lambda: coordinators.describe(transactional_id).state == "CompleteAbort", DEADLINE_S)
    with pytest.raises(KafkaWriteError, match=r"was aborted before the checkpoint"):
        job.snapshot()


def test_a_timeout_above_the_brokers_limit(start):
    job = start(transaction_timeout_ms=3_600_000)
    job.write(1)
    with pytest.raises(
        KafkaWriteError, match=r"transaction\.timeout\.ms \(3600000 ms\).*transaction\.max\.timeout\.ms is 900000 ms"
    ):
        job.snapshot()


def test_what_the_coordinator_says_of_a_transaction_in_each_state(start, coordinators):
    job = start()
    job.write(1)
    (prepared,) = committables_of(job.snapshot())

    assert coordinators.commit(prepared._replace(producer_epoch=prepared.producer_epoch + 1)) is Outcome.ABORTED
    # what is there is another transaction of the producer: later, as the clock has it, or earlier, or elsewhere
    assert coordinators.commit(prepared._replace(start_time_ms=prepared.start_time_ms - 1)) is Outcome.COMMITTED
    assert coordinators.commit(prepared._replace(start_time_ms=prepared.start_time_ms + 60_000)) is Outcome.COMMITTED
    assert coordinators.commit(prepared._replace(partitions="0" * 16)) is Outcome.COMMITTED
    assert coordinators.describe(prepared.transactional_id).partitions == prepared.partitions != ""
    assert coordinators.describe(prepared.transactional_id).state == "Ongoing"
    assert coordinators.commit(prepared) is Outcome.OPEN
    assert coordinators.commit(prepared) is Outcome.COMMITTED
    assert coordinators.commit(PreparedTransaction("never", 1, 0, 1)) is Outcome.UNKNOWN
    # the producer takes it for its own
    job.subtasks[0]._chained.operator._writer._prepared[0][1].commit()


def test_an_aborted_transaction_keeps_its_start(start, coordinators):
    job = start()
    job.write(1)
    (prepared,) = committables_of(job.snapshot())
    coordinators.abort(prepared.transactional_id)
    found = coordinators.describe(prepared.transactional_id)
    assert (found.state, found.start_time_ms) == ("CompleteAbort", prepared.start_time_ms)
    assert found.producer_epoch == prepared.producer_epoch + 1
    assert coordinators.commit(prepared) is Outcome.ABORTED
    coordinators.abort(prepared.transactional_id)
    assert coordinators.describe(prepared.transactional_id) == found


def test_a_restored_transaction_that_brokers_have_forgotten_is_taken_for_committed(start, kafka, caplog):
    committer = start().make_sink().create_committer()
    gone = PreparedTransaction(f"{start.prefix}-aa-bb-0-cc-0", 1, 0, 1)
    try:
        committer.recommit([gone])
        assert "no longer exists" in caplog.text
        with pytest.raises(TransactionLostError, match="is gone"):
            committer.commit([gone])
    finally:
        committer.close()
