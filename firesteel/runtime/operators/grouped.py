"""Operators of batch execution that read all records of one key after those of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

__all__ = ["GroupedOperator"]


@runtime_checkable
class GroupedOperator(Protocol):
    """An operator that works on groups: records of the backend's current key, in the order of their timestamps."""

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Processes records of the current key: all that have timestamps at once; of the others perhaps only a part."""
        ...

    def end_groups(self) -> None:
        """There are no more for now: emits what was collected."""
        ...
