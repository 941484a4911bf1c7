"""The splits of an IteratorSource."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from firesteel.common.errors import FiresteelError

__all__ = ["IteratorSourceError", "IteratorSourceSplit", "wrap_splits"]


class IteratorSourceError(FiresteelError):
    """A source gave what its base class cannot use: a split without an id, a record without a position."""

    def __init__(self, source: str, message: str, *, hint: str | None = None):
        super().__init__(f"{source}: {message}", hint=hint)
        self.source = source


@dataclass(frozen=True)
class IteratorSourceSplit:
    """A split as its source described it, and the position to read it from; None is its beginning."""

    split_id: str
    split: Any
    position: Any = None


def wrap_splits(source: str, found: Iterable[Any]) -> list[IteratorSourceSplit]:
    """What ``splits()`` gave, with ids."""
    splits: dict[str, IteratorSourceSplit] = {}
    for split in found:
        split_id = split if isinstance(split, str) else getattr(split, "split_id", None)
        if not isinstance(split_id, str):
            raise IteratorSourceError(
                source,
                f"splits() gave {split!r}, which has no id.",
                hint="A split is a str, or an object whose attribute split_id is one.",
            )
        if split_id in splits:
            raise IteratorSourceError(
                source, f"splits() gave '{split_id}' twice.", hint="The id identifies the split of a position."
            )
        splits[split_id] = IteratorSourceSplit(split_id, split)
    return list(splits.values())
