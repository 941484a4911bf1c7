"""Base class of operators whose results come later than their records, from outside the mailbox thread."""

from __future__ import annotations

from abc import ABC, abstractmethod

from firesteel.runtime.operators.base import StreamOperator

__all__ = ["DeferringOperator"]


class DeferringOperator(StreamOperator, ABC):
    """An operator that takes records in one turn and emits their results in a later one.

    Results that come wake the mailbox. A task whose operator is full reads no input, but takes part in checkpoints and
    emits results. Where tasks do not take turns (in a batch or an epoch) the operator waits in ``process_batch``
    and ``drain``.
    """

    awaits_room = False
    """Whether ``process_batch`` waits, in the middle of a turn, as one record has brought very many."""

    @property
    @abstractmethod
    def has_results(self) -> bool:
        """Whether ``emit_results`` may have something to do."""

    @property
    @abstractmethod
    def is_drained(self) -> bool:
        """Whether everything that came has been emitted."""

    @property
    @abstractmethod
    def room(self) -> int:
        """The number of records that can be taken up at once; 0 if the operator is full."""

    @property
    @abstractmethod
    def is_overfull(self) -> bool:
        """Whether so many records wait that the one under way must not bring any more now."""

    @abstractmethod
    def emit_results(self) -> None:
        """Emits what can be emitted, until the turn is over."""

    @abstractmethod
    def drain(self) -> None:
        """Waits for all results and emits them; only where tasks do not take turns."""
