"""Transaction snapshot: which transactions a read of a table has seen."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.connectors.postgres.cdc.pgoutput import parse_lsn

__all__ = ["TransactionSnapshot"]

_WRAP = 1 << 32


@dataclass(frozen=True)
class TransactionSnapshot:
    """PostgreSQL's ``pg_current_snapshot()``, and how far the log was at that time.

    Of the transactions that have been committed by now, those are visible that had ended when the snapshot was taken.
    """

    xmin: int
    xmax: int
    in_progress: frozenset[int]
    lsn: int

    @classmethod
    def parse(cls, text: str, lsn: str) -> TransactionSnapshot:
        """From what the server writes.

        >>> TransactionSnapshot.parse("10:20:10,14", "0/AB").in_progress == {10, 14}
        True
        """
        xmin, xmax, running = text.split(":")
        return cls(
            int(xmin), int(xmax), frozenset(map(int, running.split(","))) if running else frozenset(), parse_lsn(lsn)
        )

    def sees(self, xid: int) -> bool:
        """Whether a transaction that has been committed by now is visible.

        The number is the lower half of the transaction's number, all that the log has of it. It is taken for the one
        nearest to the snapshot: the log is only asked about transactions from the time the tables are read.
        """
        distance = (xid - self.xmax) % _WRAP
        full = self.xmax + (distance if distance < _WRAP // 2 else distance - _WRAP)
        return full < self.xmax and full not in self.in_progress
