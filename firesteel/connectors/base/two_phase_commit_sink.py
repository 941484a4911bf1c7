"""Base class for exactly-once sinks with transactions (two-phase commit)."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, WriterContext

__all__ = ["PreparedTransaction", "TwoPhaseCommitSink"]

TransactionT = TypeVar("TransactionT")
CommittableT = TypeVar("CommittableT")


@dataclass(frozen=True)
class PreparedTransaction(Generic[CommittableT]):
    """A transaction in a checkpoint: of which sink, its id, and what ``prepare`` gave."""

    sink_id: str
    transaction_id: str
    committable: CommittableT


class TwoPhaseCommitSink(Sink, Generic[TransactionT, CommittableT]):
    """Base class of exactly-once sinks: a subclass defines how a transaction is begun, written, prepared and committed.

    What happens to the records between two checkpoints:

    1. ``begin`` is called for the first of them, with an id that no other transaction has, and ``write`` for each
       batch. Nothing of it may be seen from outside.
    2. At the checkpoint ``prepare`` is called. From now on the transaction must outlive this process, and any process
       that has what ``prepare`` returned (picklable) must be able to commit it. It is stored in the checkpoint.
    3. The checkpoint is complete: ``commit`` is called, here or in another process. Now all of it is seen.

    If the job fails before 3 has ended, it starts again from a checkpoint and commits what is in it: perhaps again,
    perhaps in another subtask. So ``commit`` must do nothing where the transaction has been committed already; the id
    helps to find that out. Transactions that are not in the checkpoint are never committed: the job reads their records
    again. What they have left behind is removed where ``pending_transactions`` and ``recover_and_abort`` are there.

    The object is a description: it is pickled, and used in several processes at once. What has to be kept open belongs
    into the transaction.
    """

    shares_writer_state: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The operator's name: that of the class."""
        return type(self).__name__

    @abstractmethod
    def begin(self, transaction_id: str) -> TransactionT:
        """A new transaction. The id is of letters, digits and dashes, some 50 characters."""

    @abstractmethod
    def write(self, transaction: TransactionT, values: Sequence[Any]) -> None:
        """Writes records in order."""

    @abstractmethod
    def prepare(self, transaction: TransactionT) -> CommittableT:
        """Writes out the transaction and lets go of it; returns what it takes to commit it from anywhere."""

    @abstractmethod
    def commit(self, committable: CommittableT) -> None:
        """Makes a prepared transaction visible, unless it is already."""

    def recover_and_commit(self, committable: CommittableT) -> None:
        """Commits what was restored; like ``commit`` unless overridden."""
        self.commit(committable)

    def abort(self, transaction: TransactionT) -> None:
        """Gives up a transaction that is not prepared: the job ends or has failed. Does nothing unless overridden."""

    def pending_transactions(self, prefix: str) -> Iterable[str]:
        """The ids with this prefix of all transactions that are outside and not committed; none unless overridden."""
        return ()

    def recover_and_abort(self, transaction_id: str) -> None:
        """Removes what a failed attempt has left; not called unless ``pending_transactions`` is overridden."""

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A writer for a job that begins."""
        return _TwoPhaseCommitWriter(self, context, None)

    def restore_writer(self, context: WriterContext, state: list[str]) -> SinkWriter[Any]:
        """A writer for a restored job; the state has the ids of all transactions of the checkpoint."""
        return _TwoPhaseCommitWriter(self, context, state)

    def create_committer(self) -> Committer[Any]:
        """A committer that calls ``commit``."""
        return _TwoPhaseCommitter(self)

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """Exactly once."""
        return DeliveryGuarantee.EXACTLY_ONCE

    def needs_checkpoints(self) -> bool:
        """Without them nothing would be seen before the stream ends."""
        return True

    def abort_left_over(self, sink_id: str, *, attempt_id: str | None, keep: Collection[str]) -> None:
        """Removes transactions of the sink that will not be committed: not of this attempt, nor to be kept."""
        for transaction_id in list(self.pending_transactions(f"{sink_id}-")):
            if transaction_id in keep:
                continue
            if attempt_id is None or not transaction_id.startswith(f"{sink_id}-{attempt_id}-"):
                self.recover_and_abort(transaction_id)


class _TwoPhaseCommitWriter(SinkWriter[PreparedTransaction[Any]]):
    """Has at most one open transaction; its state are the ids of those that may not have been committed yet."""

    def __init__(
        self, sink: TwoPhaseCommitSink[Any, Any], context: WriterContext, restored: Sequence[str] | None
    ) -> None:
        self._sink = sink
        self._sink_id = context.sink_id
        # a task may be run more than once in an attempt, so the writer has a part of the id of its own
        writer_id = uuid.uuid4().hex[:8]
        self._prefix = f"{context.sink_id}-{context.attempt_id}-{context.subtask_index}-{writer_id}"
        self._number = 0
        self._open: tuple[str, Any] | None = None
        self._prepared: list[PreparedTransaction[Any]] = []
        self._uncommitted: dict[str, int | None] = {}
        """The ids of prepared transactions, with the first checkpoint that has them."""
        # a later attempt of a batch, which has no state, may go on with what an earlier one has prepared
        is_later_batch = restored is None and context.execution.commits_in_driver and context.attempt_number > 0
        if context.subtask_index == 0 and not is_later_batch:
            # other subtasks may not have committed theirs yet: that is why each is given the ids of all
            sink.abort_left_over(context.sink_id, attempt_id=context.attempt_id, keep=set(restored or ()))

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Writes to the open transaction, which the first record opens."""
        if not values:
            return
        if self._open is None:
            transaction_id = f"{self._prefix}-{self._number}"
            self._number += 1
            self._open = transaction_id, self._sink.begin(transaction_id)
        self._sink.write(self._open[1], values)

    def flush(self, end_of_input: bool) -> None:
        """Prepares the open transaction."""
        if self._open is not None:
            transaction_id, transaction = self._open
            committable = self._sink.prepare(transaction)
            self._open = None
            self._prepared.append(PreparedTransaction(self._sink_id, transaction_id, committable))

    def prepare_commit(self) -> list[PreparedTransaction[Any]]:
        """What was prepared since the last time."""
        prepared, self._prepared = self._prepared, []
        self._uncommitted.update((transaction.transaction_id, None) for transaction in prepared)
        return prepared

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        """The ids that the checkpoint commits."""
        for transaction_id, first in self._uncommitted.items():
            if first is None:
                self._uncommitted[transaction_id] = checkpoint_id
        return list(self._uncommitted)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Those of the checkpoint are committed."""
        self._uncommitted = {
            transaction_id: first
            for transaction_id, first in self._uncommitted.items()
            if first is None or first > checkpoint_id
        }

    def close(self) -> None:
        """Aborts the open transaction."""
        if self._open is not None:
            (_, transaction), self._open = self._open, None
            self._sink.abort(transaction)


class _TwoPhaseCommitter(Committer[PreparedTransaction[Any]]):
    def __init__(self, sink: TwoPhaseCommitSink[Any, Any]) -> None:
        self._sink = sink
        self._sink_ids: set[str] = set()

    def commit(self, committables: Sequence[PreparedTransaction[Any]]) -> None:
        """Commits one transaction after the other."""
        for prepared in committables:
            self._sink_ids.add(prepared.sink_id)
            self._sink.commit(prepared.committable)

    def recommit(self, committables: Sequence[PreparedTransaction[Any]]) -> None:
        """Commits what was restored."""
        for prepared in committables:
            self._sink_ids.add(prepared.sink_id)
            self._sink.recover_and_commit(prepared.committable)

    def finish(self) -> None:
        """Aborts what tasks have prepared that were run again."""
        for sink_id in self._sink_ids:
            # all that counts is committed: what cannot be removed now does no harm to the job's result
            with suppress(Exception):
                self._sink.abort_left_over(sink_id, attempt_id=None, keep=())
