"""External system of a simulated cluster, which its sinks write to and which keeps committed records."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, WriterContext
from firesteel.testing.simulation.machine import scheduler

__all__ = ["Ledger", "LedgerSink", "Outside", "UpsertSink", "Write"]

_LATENCY_US = (100, 2_000)
_RECOVERS_US = 5_000_000


@dataclass(frozen=True)
class Write:
    """A record that was written at once, without a transaction."""

    at_us: int
    process: str
    attempt: str
    subtask: int
    value: Any


@dataclass
class Ledger:
    """What one sink has written."""

    committed: list[Any] = field(default_factory=list)
    transactions: dict[str, list[Any]] = field(default_factory=dict)
    """Those that are committed, by id."""
    prepared: dict[str, list[Any]] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    active: dict[str, tuple[int, int]] = field(default_factory=dict)
    """When each attempt got its first and its last record, by its id."""

    def got_records(self, attempt: str) -> None:
        """A writer of an attempt has records.

        Not if its process has just been continued after it had been stopped: it has not had the time to find out what
        has happened meanwhile.
        """
        simulation = scheduler.current
        assert simulation is not None
        thread = simulation.this_thread()
        assert thread is not None
        now, thawed_at = simulation.now, thread.process.thawed_at
        if not thawed_at or now - thawed_at > _RECOVERS_US:
            self.active[attempt] = self.active.get(attempt, (now, now))[0], now


class Outside:
    """The systems outside of the cluster, by name."""

    def __init__(self) -> None:
        self.ledgers: dict[str, Ledger] = {}
        self._happened: set[str] = set()

    def happens_once(self, name: str) -> bool:
        """True for the first call with a name, from any process."""
        is_first = name not in self._happened
        self._happened.add(name)
        return is_first

    def ledger(self, name: str) -> Ledger:
        """One of them."""
        return self.ledgers.setdefault(name, Ledger())


def _ledger(name: str) -> Ledger:
    """The ledger, after the time that a call takes; a process that was killed gets no further than here."""
    simulation = scheduler.current
    assert simulation is not None
    simulation.sleep(simulation.random.randint(*_LATENCY_US))
    outside: Outside = simulation.outside
    return outside.ledger(name)


def _copied(records: list[Any]) -> list[Any]:
    """What arrives outside: nothing there shares memory with a process of the cluster."""
    copies: list[Any] = pickle.loads(pickle.dumps(records))
    return copies


class LedgerSink(Sink):
    """Writes with transactions: exactly once."""

    def __init__(self, name: str):
        self.name = name

    def create_writer(self, context: WriterContext) -> SinkWriter[str]:
        """One transaction per checkpoint and subtask."""
        return _LedgerWriter(self.name, context)

    def create_committer(self) -> Committer[str]:
        """Commits transactions; those that are committed stay so."""
        return _LedgerCommitter(self.name)

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """Exactly once."""
        return DeliveryGuarantee.EXACTLY_ONCE


class _LedgerWriter(SinkWriter[str]):
    def __init__(self, name: str, context: WriterContext):
        self._name = name
        self._attempt = context.attempt_id
        self._prefix = f"{context.attempt_id}/{context.subtask_index}"
        self._records: list[Any] = []
        self._number = 0

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self._records += values
        outside: Outside = scheduler.current.outside  # type: ignore[union-attr]
        outside.ledger(self._name).got_records(self._attempt)

    def prepare_commit(self) -> list[str]:
        if not self._records:
            return []
        self._number += 1
        transaction = f"{self._prefix}/{self._number}"
        _ledger(self._name).prepared[transaction] = _copied(self._records)
        self._records = []
        return [transaction]


class _LedgerCommitter(Committer[str]):
    def __init__(self, name: str):
        self._name = name

    def commit(self, committables: Sequence[str]) -> None:
        for transaction in committables:
            ledger = _ledger(self._name)
            if transaction in ledger.transactions:
                continue
            records = ledger.prepared.pop(transaction)
            ledger.transactions[transaction] = records
            ledger.committed += records


class UpsertSink(Sink):
    """Writes each record at once: at least once."""

    def __init__(self, name: str):
        self.name = name

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A writer without transactions."""
        return _UpsertWriter(self.name, context)

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """At least once."""
        return DeliveryGuarantee.AT_LEAST_ONCE


class _UpsertWriter(SinkWriter[Any]):
    def __init__(self, name: str, context: WriterContext):
        self._name = name
        self._attempt = context.attempt_id
        self._subtask = context.subtask_index

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        simulation = scheduler.current
        assert simulation is not None
        thread = simulation.this_thread()
        assert thread is not None
        ledger = _ledger(self._name)
        ledger.got_records(self._attempt)
        ledger.writes += (
            Write(simulation.now, thread.process.name, self._attempt, self._subtask, value)
            for value in _copied(list(values))
        )
