"""How far event time had come when a checkpoint was taken."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.runtime.time.watermark_generation import WatermarkAssigner

__all__ = ["WATERMARKS", "SubtaskWatermarks", "WatermarkState"]

WATERMARKS = "_watermarks"
"""The operator state (union) that every subtask's watermarks are in."""


@dataclass(frozen=True)
class SubtaskWatermarks:
    """What one subtask had sent, and the watermark of each of its splits."""

    subtask: int
    parallelism: int
    sent: int
    splits: dict[str, int]


@dataclass(frozen=True)
class WatermarkState:
    """The watermarks of all subtasks: a split keeps its own wherever it is read on."""

    subtasks: tuple[SubtaskWatermarks, ...]

    @staticmethod
    def items(assigner: WatermarkAssigner, subtask: int, parallelism: int) -> list[SubtaskWatermarks]:
        """What a subtask puts. It does even if event time has not begun: the others must know that it has not."""
        return [SubtaskWatermarks(subtask, parallelism, assigner.watermark, assigner.split_watermarks())]

    def items_for(self, subtask: int, parallelism: int) -> list[SubtaskWatermarks]:
        """What a subtask puts that has not applied what it was restored with."""
        return [SubtaskWatermarks(subtask, parallelism, self._sent_by(subtask, parallelism), self._splits())]

    def apply(self, assigner: WatermarkAssigner, subtask: int, parallelism: int) -> None:
        """Lets a subtask go on from here; its splits have been added already."""
        assigner.restore(self._sent_by(subtask, parallelism), self._splits())

    def _splits(self) -> dict[str, int]:
        return {split: watermark for item in self.subtasks for split, watermark in item.splits.items()}

    def _sent_by(self, subtask: int, parallelism: int) -> int:
        """The subtask's own last watermark; with another parallelism the lowest, which is true of all records."""
        for item in self.subtasks:
            if (item.subtask, item.parallelism) == (subtask, parallelism):
                return item.sent
        return min(item.sent for item in self.subtasks)
