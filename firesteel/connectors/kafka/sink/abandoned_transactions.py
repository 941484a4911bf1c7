"""Aborts lingering transactions, which would block read-committed consumers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from firesteel.connectors.kafka.sink.transactional_id import TransactionalId
from firesteel.connectors.kafka.sink.transactions import PreparedTransaction, TransactionCoordinators

__all__ = ["AbandonedTransactions", "SinkIdentity"]

_log = logging.getLogger(__name__)


class SinkIdentity(NamedTuple):
    """Whose transactions a writer's are; part of its state, as a job that is restored has another sink id."""

    prefix: str
    sink_id: str


class AbandonedTransactions:
    """Aborts what other attempts have left, apart from what the restored checkpoint has prepared.

    Whose transactions these can be:

    - *A job that begins without state* aborts all with its prefix, of any writer.
      Other sinks of the same job are known by the attempt they share.
    - *A job that is restored, or restarted*, aborts those of its own sink, under its present id and those that the
      state names. Another sink with the same prefix may have prepared some that are in its state only.
    - *Within an attempt* a task may have been run several times, where Spark runs it in epochs. Which run counts is
      known later: see :meth:`abort_earlier_runs`.
    """

    def __init__(
        self,
        coordinators: TransactionCoordinators,
        own: TransactionalId,
        restored: Iterable[SinkIdentity],
        prepared: Iterable[PreparedTransaction],
        *,
        parallelism: int,
        is_new_job: bool,
    ):
        self._coordinators = coordinators
        self._own = own
        self._sinks = {SinkIdentity(own.prefix, own.sink_id), *restored}
        self._prepared = {each.transactional_id: each for each in prepared}
        self._parallelism = parallelism
        self._is_new_job = is_new_job
        self._seen: dict[str, int] = {}

    def abort_other_attempts(self) -> list[str]:
        """Aborts them, and returns which they were."""
        aborted = []
        for prefix in {sink.prefix for sink in self._sinks}:
            for transactional_id in self._coordinators.list_ongoing(f"{prefix}-"):
                parts = TransactionalId.parse(transactional_id, prefix)
                if parts is None or parts.attempt_id == self._own.attempt_id:
                    continue
                if not self._is_new_job and SinkIdentity(prefix, parts.sink_id) not in self._sinks:
                    continue
                if not self._is_prepared(transactional_id):
                    _log.info("aborting the transaction '%s', which an earlier attempt has left", transactional_id)
                    self._coordinators.abort(transactional_id)
                    aborted.append(transactional_id)
        return aborted

    def abort_earlier_runs(self, own: Iterable[str]) -> list[str]:
        """Aborts what other runs of the same task have left, where it is certain that they do not count.

        Called each time a checkpoint is complete, with the transactional ids of this writer. What was there when the
        one before was complete is of a run before that, or of a second run of the epoch that has now been completed
        with this writer's. Neither counts.
        """
        seen, aborted = self._seen, []
        self._seen = {}
        for transactional_id, start in self._of_other_runs(set(own)).items():
            if seen.get(transactional_id) == start:
                self._coordinators.abort(transactional_id)
                aborted.append(transactional_id)
            else:
                self._seen[transactional_id] = start
        return aborted

    def _of_other_runs(self, own: set[str]) -> Mapping[str, int]:
        found = {}
        for transactional_id in self._coordinators.list_ongoing(f"{self._own.prefix}-{self._own.sink_id}-"):
            parts = TransactionalId.parse(transactional_id, self._own.prefix)
            if parts is None or transactional_id in own or parts.subtask % self._parallelism != self._own.subtask:
                continue
            description = self._coordinators.describe(transactional_id)
            if description is not None and not self._is_prepared(transactional_id):
                found[transactional_id] = description.start_time_ms
        return found

    def _is_prepared(self, transactional_id: str) -> bool:
        """Whether the transaction is in the restored state, and not a later one of the same producer."""
        prepared = self._prepared.get(transactional_id)
        if prepared is None:
            return False
        found = self._coordinators.describe(transactional_id)
        return found is not None and prepared.is_described_by(found)
