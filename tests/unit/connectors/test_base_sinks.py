"""TwoPhaseCommitSink and AtLeastOnceSink: the order of calls, ids, and what is done with what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.connectors import NumberSequenceSource
from firesteel.connectors.base import AtLeastOnceSink, PreparedTransaction, TwoPhaseCommitSink
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import SinkHarness, eventually, test_environment
from firesteel.testing.conformance.sink_attempt import SinkAttempt, StandaloneContext
from firesteel.testing.conformance.sink_jobs import run_sink_job

CALLS: list[Any] = []
PENDING: dict[str, list[Any]] = {}
VISIBLE: list[Any] = []


@pytest.fixture(autouse=True)
def _empty_outside() -> None:
    for outside in (CALLS, PENDING, VISIBLE):
        outside.clear()


class Ledger(TwoPhaseCommitSink[list[Any], str]):
    def begin(self, transaction_id: str) -> list[Any]:
        PENDING[transaction_id] = [transaction_id]
        CALLS.append("begin")
        return PENDING[transaction_id]

    def write(self, transaction: list[Any], values: Sequence[Any]) -> None:
        transaction += values
        CALLS.append(("write", list(values)))

    def prepare(self, transaction: list[Any]) -> str:
        CALLS.append("prepare")
        return str(transaction[0])

    def commit(self, committable: str) -> None:
        CALLS.append("commit")
        VISIBLE.extend(PENDING.pop(committable, [None])[1:])

    def abort(self, transaction: list[Any]) -> None:
        CALLS.append("abort")
        del PENDING[transaction[0]]

    def pending_transactions(self, prefix: str) -> list[str]:
        return [transaction for transaction in PENDING if transaction.startswith(prefix)]

    def recover_and_abort(self, transaction_id: str) -> None:
        CALLS.append("recover_and_abort")
        del PENDING[transaction_id]


def test_a_transaction_for_each_checkpoint() -> None:
    with SinkHarness(Ledger()) as harness:
        harness.process_elements([1, 2])
        harness.snapshot(1)
        harness.process_element(3)
        harness.notify_checkpoint_complete(1)
        harness.snapshot(2)
        harness.notify_checkpoint_complete(2)
    writes = [("write", [1]), ("write", [2])]
    expected = ["begin", *writes, "prepare", "begin", ("write", [3]), "commit", "prepare", "commit"]
    assert expected == CALLS
    assert VISIBLE == [1, 2, 3]


def test_no_transaction_where_nothing_is_written() -> None:
    with SinkHarness(Ledger()) as harness:
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
        harness.finish()
    assert CALLS == []


def test_the_open_transaction_is_aborted_at_the_end() -> None:
    with SinkHarness(Ledger()) as harness:
        harness.process_element(1)
        harness.snapshot(1)
        harness.process_element(2)
    assert CALLS[-1] == "abort"
    assert len(PENDING) == 1


def test_left_over_transactions_are_aborted_by_the_first_subtask_of_the_next_attempt() -> None:
    sink = Ledger()
    first = SinkAttempt(sink, 2, job_id="job")
    first.write(range(6))
    checkpoint = first.snapshot(1)
    first.write(range(6, 12))
    second_checkpoint = first.snapshot(2)
    assert len(PENDING) == 4
    other = SinkAttempt(sink, 1, job_id="other")
    other.write(["other"])
    CALLS.clear()
    # goes on from the first checkpoint: what was prepared for the second is never committed
    second = SinkAttempt(sink, 1, job_id="job", number=1, restored=checkpoint)
    assert CALLS == ["commit", "commit", "recover_and_abort", "recover_and_abort"]
    assert sorted(VISIBLE) == list(range(6))
    assert len(PENDING) == 1
    assert second_checkpoint.parallelism == 2
    for attempt in (first, second, other):
        attempt.close()


def test_what_other_subtasks_are_yet_to_commit_is_kept() -> None:
    first = SinkAttempt(Ledger(), 3, job_id="job")
    first.write(range(9))
    checkpoint = first.snapshot(1)
    first.close()
    CALLS.clear()
    second = SinkAttempt(Ledger(), 3, job_id="job", number=1, restored=checkpoint)
    assert CALLS == ["commit", "commit", "commit"]
    assert sorted(VISIBLE) == list(range(9))
    second.close()


def test_ids_are_unique_though_a_task_is_run_again() -> None:
    context = StandaloneContext()
    for _ in range(2):
        writer = Ledger().create_writer(context)
        writer.write_batch([1], None)
        writer.flush(end_of_input=False)
    ids = list(PENDING)
    assert len(set(ids)) == 2
    assert all(name.startswith(f"{context.sink_id}-{context.attempt_id}-0-") for name in ids)
    assert all(name.replace("-", "").isalnum() and len(name) < 60 for name in ids)


def test_a_later_attempt_of_a_batch_aborts_nothing() -> None:
    context = StandaloneContext()
    writer = Ledger().create_writer(context)
    writer.write_batch([1], None)
    writer.flush(end_of_input=True)
    (prepared,) = writer.prepare_commit()
    assert prepared == PreparedTransaction(context.sink_id, *[next(iter(PENDING))] * 2)
    context.attempt_id, context.attempt_number = "later", 1
    Ledger().create_writer(context)
    assert len(PENDING) == 1


def test_a_batch_job_leaves_nothing_over() -> None:
    settings = Configuration().set_string("execution.runtime-mode", "BATCH")
    PENDING["unrelated"] = []
    env = test_environment(2, settings)
    env.from_source(NumberSequenceSource(1, 10), WatermarkStrategy.no_watermarks(), "numbers").sink_to(Ledger())
    env.execute("batch")
    assert sorted(VISIBLE) == list(range(1, 11))
    assert list(PENDING) == ["unrelated"]


def test_a_job_in_epochs_whose_tasks_run_twice_leaves_nothing_over() -> None:
    PENDING["unrelated"] = []
    run_sink_job(Ledger(), range(60), "epochs", 30)
    assert sorted(VISIBLE) == list(range(60))
    eventually(lambda: list(PENDING) == ["unrelated"])


class Careful(Ledger):
    def recover_and_commit(self, committable: str) -> None:
        CALLS.append("recover_and_commit")
        self.commit(committable)


def test_restored_transactions_may_be_committed_in_another_way() -> None:
    first = SinkAttempt(Careful(), 1, job_id="job")
    first.write([1])
    checkpoint = first.snapshot(1)
    first.close()
    CALLS.clear()
    SinkAttempt(Careful(), 1, job_id="job", number=1, restored=checkpoint).close()
    assert CALLS == ["recover_and_commit", "commit"]


def test_guarantees() -> None:
    assert Ledger().get_delivery_guarantee() is DeliveryGuarantee.EXACTLY_ONCE
    assert Ledger().needs_checkpoints()
    assert Log().get_delivery_guarantee() is DeliveryGuarantee.AT_LEAST_ONCE
    assert Ledger().name == "Ledger"


class Log(AtLeastOnceSink[list[Any]]):
    max_batch_size = 2

    def open(self, context: Any) -> list[Any]:
        CALLS.append(("open", context.subtask_index))
        return []

    def write(self, client: list[Any], values: Sequence[Any]) -> None:
        CALLS.append(list(values))
        client.extend(values)

    def flush(self, client: list[Any]) -> None:
        VISIBLE.extend(client)
        client.clear()

    def close(self, client: list[Any]) -> None:
        CALLS.append("close")


def test_batches_are_cut_and_flushed_before_a_checkpoint() -> None:
    attempt = SinkAttempt(Log(), 1, job_id="job")
    attempt.write([1, 2, 3])
    assert VISIBLE == []
    attempt.snapshot(1)
    assert VISIBLE == [1, 2, 3]
    attempt.write([4])
    attempt.finish()
    attempt.close()
    assert CALLS == [("open", 0), [1, 2], [3], [4], "close"]
    assert VISIBLE == [1, 2, 3, 4]
