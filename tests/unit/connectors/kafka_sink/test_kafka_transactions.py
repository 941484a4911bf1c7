"""Which transaction is whose, and what has become of one that a checkpoint relies on."""

from __future__ import annotations

import pytest

from firesteel.connectors.kafka.sink.abandoned_transactions import AbandonedTransactions, SinkIdentity
from firesteel.connectors.kafka.sink.transactional_id import TransactionalId
from firesteel.connectors.kafka.sink.transactions import Outcome, PreparedTransaction, TransactionDescription

PREPARED = PreparedTransaction("id", 7, 3, 1000)


@pytest.mark.parametrize(
    ("state", "producer_id", "epoch", "start", "outcome"),
    [
        ("Ongoing", 7, 3, 1000, Outcome.OPEN),
        ("PrepareCommit", 7, 3, 1000, Outcome.COMMITTED),
        ("CompleteCommit", 7, 3, 1000, Outcome.COMMITTED),
        # later transactions of the same producer, whatever became of them
        ("Ongoing", 7, 3, 2000, Outcome.COMMITTED),
        ("CompleteCommit", 7, 3, 2000, Outcome.COMMITTED),
        ("PrepareAbort", 7, 3, 2000, Outcome.COMMITTED),
        ("CompleteAbort", 7, 4, 2000, Outcome.COMMITTED),
        # the same, of a coordinator whose clock was set back
        ("Ongoing", 7, 3, 999, Outcome.COMMITTED),
        ("CompleteCommit", 7, 3, 999, Outcome.COMMITTED),
        ("PrepareAbort", 7, 3, 10, Outcome.COMMITTED),
        ("CompleteAbort", 7, 4, 10, Outcome.COMMITTED),
        ("PrepareAbort", 7, 3, 1000, Outcome.ABORTED),
        ("CompleteAbort", 7, 3, 1000, Outcome.ABORTED),
        ("PrepareEpochFence", 7, 4, 1000, Outcome.ABORTED),
        ("CompleteAbort", 7, 4, 1000, Outcome.ABORTED),
        ("Empty", 7, 5, -1, Outcome.ABORTED),
        ("Dead", 7, 3, 1000, Outcome.UNKNOWN),
        ("Ongoing", 8, 0, 1000, Outcome.UNKNOWN),
    ],
)
def test_outcomes(state, producer_id, epoch, start, outcome):
    assert Outcome.of(PREPARED, TransactionDescription(state, producer_id, epoch, 60_000, start)) is outcome


@pytest.mark.parametrize(
    ("state", "before", "now", "outcome"),
    [
        ("Ongoing", "a", "a", Outcome.OPEN),
        # another one that began in the same millisecond
        ("Ongoing", "a", "b", Outcome.COMMITTED),
        # of a checkpoint that does not know
        ("Ongoing", "", "b", Outcome.OPEN),
        # a transaction that ends has ever fewer partitions
        ("PrepareAbort", "a", "b", Outcome.ABORTED),
        ("CompleteAbort", "a", "", Outcome.ABORTED),
        ("CompleteCommit", "a", "", Outcome.COMMITTED),
    ],
)
def test_outcomes_by_partitions(state, before, now, outcome):
    prepared = PREPARED._replace(partitions=before)
    assert Outcome.of(prepared, TransactionDescription(state, 7, 3, 60_000, 1000, now)) is outcome


def test_an_id_that_nobody_knows():
    assert Outcome.of(PREPARED, None) is Outcome.UNKNOWN


def test_ids_tell_prefixes_apart_that_begin_alike():
    own = TransactionalId("orders-a", "f00d", "beef", 3, "cafe", 12)
    assert str(own) == "orders-a-f00d-beef-3-cafe-12"
    assert TransactionalId.parse(str(own), "orders-a") == own
    for other in ("orders", "orders-a-f00d", "order", "x"):
        assert TransactionalId.parse(str(own), other) is None
    assert TransactionalId.parse("orders-a-other", "orders-a") is None


class Coordinators:
    """Transactions that are ongoing, by id, each with its start."""

    def __init__(self, **ongoing):
        self.ongoing = {str(tid): start for tid, start in ongoing.items()}

    def list_ongoing(self, prefix):
        return [each for each in self.ongoing if each.startswith(prefix)]

    def describe(self, transactional_id):
        start = self.ongoing.get(transactional_id)
        return None if start is None else TransactionDescription("Ongoing", 1, 0, 60_000, start)

    def abort(self, transactional_id):
        del self.ongoing[transactional_id]


def tid(sink="aa", attempt="02", subtask=0, writer="11", number=0, prefix="p"):
    return str(TransactionalId(prefix, sink, attempt, subtask, writer, number))


def cleaner(coordinators, restored=(), prepared=(), parallelism=2, is_new_job=False):
    own = TransactionalId("p", "aa", "02", 0, "11", 0)
    return AbandonedTransactions(coordinators, own, restored, prepared, parallelism=parallelism, is_new_job=is_new_job)


def test_a_new_job_aborts_all_with_its_prefix_but_those_of_its_attempt():
    there = {tid(): 1, tid(sink="bb"): 1, tid(sink="cc", attempt="01"): 1, tid(attempt="01", prefix="p-x"): 1}
    coordinators = Coordinators(**there)
    assert cleaner(coordinators, is_new_job=True).abort_other_attempts() == [tid(sink="cc", attempt="01")]
    assert set(coordinators.ongoing) == {tid(), tid(sink="bb"), tid(attempt="01", prefix="p-x")}


def test_a_restored_job_aborts_those_of_its_own_sink_that_were_not_prepared():
    mine, left, other = (
        tid(sink="bb", attempt="01"),
        tid(sink="bb", attempt="01", number=1),
        tid(sink="cc", attempt="01"),
    )
    later = tid(sink="bb", attempt="01", number=2)
    coordinators = Coordinators(**{mine: 5, left: 6, other: 7, later: 9})
    prepared = [PreparedTransaction(mine, 1, 0, 5), PreparedTransaction(later, 1, 0, 8)]

    cleaner(coordinators, [SinkIdentity("p", "bb")], prepared).abort_other_attempts()

    # what a producer began after it had committed what the checkpoint has is not the checkpoint's
    assert set(coordinators.ongoing) == {mine, other}


def test_runs_that_do_not_count_are_aborted_once_the_next_checkpoint_is_complete():
    own, twin, elsewhere = tid(), tid(writer="22"), tid(subtask=1, writer="33")
    coordinators = Coordinators(**{own: 1, twin: 2, elsewhere: 3})
    cleaning = cleaner(coordinators)

    assert cleaning.abort_earlier_runs([own]) == []
    coordinators.ongoing[tid(writer="44")] = 9
    assert cleaning.abort_earlier_runs([own]) == [twin]
    assert set(coordinators.ongoing) == {own, elsewhere, tid(writer="44")}


def test_subtasks_that_are_no_more_are_cleaned_up_after_too():
    left = tid(attempt="01", subtask=4)
    coordinators = Coordinators(**{left: 1})
    cleaning = cleaner(coordinators)
    cleaning.abort_earlier_runs([])
    assert cleaning.abort_earlier_runs([]) == [left]
