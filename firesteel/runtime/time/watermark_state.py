"""Watermarks stored in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WATERMARKS", "SubtaskWatermarks", "WatermarkState"]

WATERMARKS = "_watermarks"
"""The operator state (union) that every subtask's watermarks are in."""


@dataclass(frozen=True)
class SubtaskWatermarks:
    """The last watermark one subtask sent, and that of each of its splits.

    Every subtask puts one, even if event time has not begun there: the lowest of all must include it.
    """

    subtask: int
    parallelism: int
    sent: int
    splits: dict[str, int]


@dataclass(frozen=True)
class WatermarkState:
    """The watermarks of all subtasks of an operator, as each of them is restored with.

    A restored watermark must not make a record late that was not: a subtask continues from its own, and where it has
    none from the lowest.
    """

    subtasks: tuple[SubtaskWatermarks, ...]

    def sent_by(self, subtask: int, parallelism: int) -> int:
        """The subtask's own last watermark; with another parallelism the lowest, which is true of all records."""
        own = self._own(subtask, parallelism)
        return min(item.sent for item in self.subtasks) if own is None else own.sent

    def splits_of(self, subtask: int, parallelism: int) -> dict[str, int]:
        """Watermarks by split: those the subtask had itself, and those it may have taken over from others."""
        splits: dict[str, int] = {}
        for item in self.subtasks:
            for split_id, watermark in item.splits.items():
                splits[split_id] = min(watermark, splits.get(split_id, watermark))
        own = self._own(subtask, parallelism)
        return splits if own is None else splits | own.splits

    def _own(self, subtask: int, parallelism: int) -> SubtaskWatermarks | None:
        return next(
            (each for each in self.subtasks if (each.subtask, each.parallelism) == (subtask, parallelism)), None
        )
