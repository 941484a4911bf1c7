"""Leak detection: threads and open files that a connector holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from firesteel.testing.conformance.errors import ConformanceError

__all__ = ["OpenResources", "nothing_left_behind"]

_PAUSE_S = 0.005
_DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True)
class OpenResources:
    """The threads and the open files of this process at one moment; of files only where the system lists them."""

    threads: frozenset[threading.Thread]
    files: frozenset[tuple[str, str]]

    @classmethod
    def now(cls) -> OpenResources:
        """Takes stock."""
        return cls(frozenset(threading.enumerate()), frozenset(_open_files()))

    def more_than(self, before: OpenResources) -> list[str]:
        """What was not there before, as words."""
        threads = [f"thread {thread.name!r}" for thread in self.threads - before.threads]
        return sorted(threads + [f"open file {number} ({target})" for number, target in self.files - before.files])


def _open_files() -> Iterator[tuple[str, str]]:
    if not _DESCRIPTORS.is_dir():
        return
    for entry in list(_DESCRIPTORS.iterdir()):
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        # the listing itself is open while it is made
        if not target.endswith("/fd"):
            yield entry.name, target


@contextmanager
def nothing_left_behind(what: str, *, tolerated_files: int = 0, timeout_s: float = 5.0) -> Iterator[None]:
    """Raises a ConformanceError if there are threads or open files afterwards that were not there before."""
    before = OpenResources.now()
    yield
    deadline = time.monotonic() + timeout_s
    while True:
        now = OpenResources.now()
        left = now.more_than(before)
        threads = [one for one in left if one.startswith("thread")]
        if not threads and len(now.files) - len(before.files) <= tolerated_files:
            return
        if time.monotonic() >= deadline:
            raise ConformanceError(
                f"{what} has left behind: {', '.join(left)}. A job that restarts a hundred times would run out of them."
            )
        time.sleep(_PAUSE_S)
