"""Loops for the first records of a stream, which also check declared types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from firesteel.runtime.codegen.loops import Loop, compile_loop
from firesteel.runtime.codegen.ownership import Ownership

if TYPE_CHECKING:
    from firesteel.runtime.chain.output import TaskOutput
    from firesteel.runtime.chain.running_operator import RunningOperator

__all__ = ["FirstLoops"]

KeyT = TypeVar("KeyT")

_CHECKED_RECORDS = 64


class FirstLoops(Generic[KeyT]):
    """Compiles loops when they are first needed.

    The first records, of which a batch may have only a few, go through loops that check types. Then ``loops`` gets one
    that does not.
    """

    def __init__(self, loops: dict[KeyT, Loop]):
        self._loops = loops
        self._checking: dict[KeyT, tuple[Loop, int]] = {}

    def get(
        self,
        key: KeyT,
        name: str,
        targets: Sequence[RunningOperator | TaskOutput | Any],
        with_timestamps: bool,
        records: int,
        ownership: Ownership = Ownership.EXCLUSIVE,
    ) -> Loop:
        """The loop for the next batch, of so many records, while ``loops`` has none."""
        known = self._checking.get(key)
        if known is None:
            known = compile_loop(name, targets, with_timestamps, checked=True, ownership=ownership), 0
        loop, seen = known[0], known[1] + records
        if seen < _CHECKED_RECORDS:
            self._checking[key] = loop, seen
        else:
            self._checking.pop(key, None)
            self._loops[key] = compile_loop(name, targets, with_timestamps, ownership=ownership)
        return loop
