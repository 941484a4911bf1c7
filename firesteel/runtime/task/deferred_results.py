"""Results of a task's operators that come later than their records, from outside the mailbox thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from firesteel.runtime.operators.deferring import DeferringOperator

if TYPE_CHECKING:
    from firesteel.runtime.chain.running_operator import RunningOperator

__all__ = ["DeferredResults"]

_UNLIMITED = 1 << 62


class DeferredResults:
    """The operators of a chain that defer their results; false if there are none."""

    def __init__(self, chain: Sequence[RunningOperator]):
        self._operators = [c.operator for c in chain if isinstance(c.operator, DeferringOperator)]

    def __bool__(self) -> bool:
        return bool(self._operators)

    @property
    def room(self) -> int:
        """How many records the task should read at most, so that few of them wait; 0 if an operator is full."""
        return min((each.room for each in self._operators), default=_UNLIMITED)

    @property
    def hold_up_record(self) -> bool:
        """Whether an operator waits in the middle of a turn, as one record has brought very many."""
        return any(each.awaits_room and each.is_overfull for each in self._operators)

    @property
    def are_ready(self) -> bool:
        """Whether there is something to emit."""
        return next(self._with_results(), None) is not None

    def emit(self) -> None:
        """Emits what can be emitted, until the turn is over."""
        for each in self._with_results():
            each.emit_results()

    def relieve(self, outputs_have_room: Callable[[], bool]) -> bool:
        """Emits results of an operator that waits for them in the middle of a turn; returns whether it did."""
        relieved = False
        for each in self._operators:
            if each.awaits_room and each.has_results and outputs_have_room():
                each.emit_results()
                relieved = True
        return relieved

    def _with_results(self) -> Iterator[DeferringOperator]:
        """Yields the operators that have results to emit and room for them behind them, the last one first."""
        for each in reversed(self._operators):
            if each.has_results:
                yield each
            if not each.room:
                return
