"""Merging window set: which windows were merged, and which state window holds their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.common.errors import FiresteelError

__all__ = ["MergeFunction", "MergingWindowSet"]

MergeFunction = Callable[[Any, list[Any], Any, list[Any]], None]
"""Takes the merged window, the windows it replaces, its state window and those merged into it."""


class _MergeResults:
    """The callback that an assigner calls for each merge."""

    __slots__ = ("merges",)

    def __init__(self) -> None:
        self.merges: list[tuple[Any, list[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        """The assigner's decision: these windows become that one."""
        self.merges.append((merge_result, list(to_be_merged)))


class MergingWindowSet:
    """The windows in flight of one key, each mapped to its state window.

    When windows merge, the contents of one of them stay where they are: its window becomes the *state window*
    of the result. So a session that grows with every record never moves its contents.
    """

    __slots__ = ("_assigner", "_state", "mapping")

    def __init__(self, assigner: Any, state: Any):
        self._assigner = assigner
        self._state = state
        stored = state.value()
        self.mapping: dict[Any, Any] = {} if stored is None else stored

    def persist(self) -> None:
        """Writes the set back to state; an empty one leaves nothing behind."""
        self._state.update(self.mapping or None)

    def get_state_window(self, window: Any) -> Any | None:
        """The window whose namespace holds the contents of a window; None if that is not in flight."""
        return self.mapping.get(window)

    def retire_window(self, window: Any) -> None:
        if self.mapping.pop(window, None) is None:
            raise FiresteelError(f"Window {window} is not in flight.")

    def add_window(self, new_window: Any, merge: MergeFunction) -> Any:
        """Adds a window, merges it as the assigner decides, and returns the window the new one ended up in."""
        mapping = self.mapping
        if new_window in mapping:
            # in flight already, maybe with another state window: nothing to merge, and the mapping must stay
            return new_window
        if not mapping:
            mapping[new_window] = new_window
            return new_window
        results = _MergeResults()
        self._assigner.merge_windows([*mapping, new_window], results)
        result_window = new_window
        merged_new_window = False
        for merge_result, to_be_merged in results.merges:
            if new_window in to_be_merged:
                merged_new_window = True
                result_window = merge_result
            # in the order of arrival, for any collection of the assigner: results do not depend on hashing
            merged = [window for window in mapping if window in to_be_merged]
            state_windows = [mapping.pop(window) for window in merged]
            state_window = state_windows[0]
            mapping[merge_result] = state_window
            # the new window alone was swallowed by one that was there: nothing changed
            if merged != [merge_result]:
                merge(merge_result, merged, state_window, state_windows[1:])
        if not merged_new_window:
            mapping[new_window] = new_window
        return result_window
