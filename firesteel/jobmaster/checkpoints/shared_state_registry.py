"""Shared state registry: counts the references of checkpoints to state files."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["SharedStateRegistry"]


class SharedStateRegistry:
    """State files, and for each the checkpoints that need it, complete or still under way.

    A file that several tasks of a checkpoint name (two segments of it) counts once for that checkpoint.

    >>> registry = SharedStateRegistry()
    >>> registry.register(1, ["a", "b"])
    >>> registry.register(2, ["b", "c"])
    >>> sorted(registry.unregister(1))
    ['a']
    >>> sorted(registry.needed())
    ['b', 'c']
    """

    def __init__(self) -> None:
        self._files: dict[int, set[str]] = {}
        self._references: dict[str, int] = {}

    def register(self, checkpoint_id: int, paths: Iterable[str]) -> None:
        """A checkpoint needs these files, besides those it was registered with before."""
        files = self._files.setdefault(checkpoint_id, set())
        for path in paths:
            if path not in files:
                files.add(path)
                self._references[path] = self._references.get(path, 0) + 1

    def unregister(self, checkpoint_id: int) -> frozenset[str]:
        """Removes the references of a checkpoint; returns the files that are no longer referenced."""
        freed: list[str] = []
        for path in self._files.pop(checkpoint_id, ()):
            left = self._references[path] - 1
            if left:
                self._references[path] = left
            else:
                del self._references[path]
                freed.append(path)
        return frozenset(freed)

    def is_needed(self, path: str) -> bool:
        """Whether any checkpoint needs the file."""
        return path in self._references

    def needed(self) -> frozenset[str]:
        """All files that some checkpoint needs."""
        return frozenset(self._references)

    def needs_beneath(self, directory: str) -> bool:
        """Whether any checkpoint needs a file in the directory."""
        prefix = directory.rstrip("/") + "/"
        return any(path.startswith(prefix) for path in self._references)

    def unneeded(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the files that are not referenced."""
        return frozenset(path for path in paths if path not in self._references)
