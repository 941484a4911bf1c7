"""The split enumerator of a lake's table: it finds the files of new versions at an interval."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.lakes.scan import Discovery, LakeScan, LakeSplit
from firesteel.spi.source import SplitEnumerator, SplitEnumeratorContext

__all__ = ["LakeEnumerator", "LakeEnumeratorState"]


@dataclass(frozen=True)
class LakeEnumeratorState:
    """What a checkpoint keeps: the version that was reached, and splits that no reader has."""

    position: Any
    pending: tuple[LakeSplit, ...]
    is_planned: bool


class LakeEnumerator(SplitEnumerator[LakeSplit]):
    """Looks at the table beside the JobMaster's thread, and gives splits to readers that ask, in order."""

    def __init__(
        self, context: SplitEnumeratorContext, scan: LakeScan, state: LakeEnumeratorState | None = None
    ) -> None:
        self._context = context
        self._scan = scan
        self._position: Any = None if state is None else state.position
        self._pending = deque(() if state is None else state.pending)
        self._is_planned = state is not None and state.is_planned
        self._asking: dict[int, None] = {}

    def start(self) -> None:
        """Looks for splits; again and again if the scan has no end."""
        if self._scan.interval_ms is not None:
            self._context.call_async(self._look, self._found, period_ms=self._scan.interval_ms)
        elif not self._is_planned:
            self._context.call_async(self._look, self._found)

    def _look(self) -> tuple[Any, Discovery]:
        # only one look is under way at a time, and the position changes only in between
        position = self._position
        return position, self._scan.discover(position)

    def _found(self, found: tuple[Any, Discovery] | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert found is not None
        _, discovery = found
        self._position = discovery.position
        self._pending.extend(discovery.splits)
        self._is_planned = True
        self._hand_out()

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Assigns a split as soon as there is one."""
        self._asking[subtask] = None
        self._hand_out()

    def add_splits_back(self, splits: list[LakeSplit], subtask: int) -> None:
        """Puts splits back in front, to be read first."""
        self._pending.extendleft(reversed(splits))
        self._hand_out()

    def _hand_out(self) -> None:
        for subtask in list(self._asking):
            if self._pending and (subtask == 0 or not self._scan.in_order):
                del self._asking[subtask]
                self._context.assign_split(self._pending.popleft(), subtask)
            elif self._is_planned and self._scan.interval_ms is None and (not self._pending or self._scan.in_order):
                del self._asking[subtask]
                self._context.signal_no_more_splits(subtask)

    def close(self) -> None:
        """Disconnects."""
        self._scan.close()

    def snapshot_state(self, checkpoint_id: int) -> LakeEnumeratorState:
        """The version that was reached, and the splits no reader has."""
        return LakeEnumeratorState(self._position, tuple(self._pending), self._is_planned)
