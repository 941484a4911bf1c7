"""A file of bounded size that lines are appended to."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path

__all__ = ["KEPT_FILES", "MAX_FILE_BYTES", "OutputFile"]

MAX_FILE_BYTES = 10 * 1024 * 1024
KEPT_FILES = 5
"""The one that is written, and those before it."""
_log = logging.getLogger(__name__)


class OutputFile:
    """A file that lines are appended to. Older ones are kept beside it, with .1, .2, … at the end, and then removed."""

    def __init__(self, path: Path, max_bytes: int = MAX_FILE_BYTES, kept: int = KEPT_FILES):
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._size = 0
        self._is_failing = False

    def write_output(self, _stream: str, lines: Sequence[str]) -> None:
        """Appends lines that functions printed. A disk that is full costs the lines, not the job."""
        data = ("\n".join(lines) + "\n").encode("utf-8", "replace")
        with self._lock:
            try:
                for start in range(0, len(data), self._max_bytes):
                    self._append(data[start : start + self._max_bytes])
                self._is_failing = False
            except OSError as error:
                if not self._is_failing:
                    _log.warning("The output of jobs cannot be written to %s: %s", self._path, error)
                self._is_failing = True

    def close(self) -> None:
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _append(self, data: bytes) -> None:
        if self._descriptor is not None and self._size + len(data) > self._max_bytes:
            os.close(self._descriptor)
            self._descriptor = None
            self._rotate()
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            self._size = os.fstat(self._descriptor).st_size
        written = memoryview(data)
        while written:
            count = os.write(self._descriptor, written)
            self._size += count
            written = written[count:]

    def _rotate(self) -> None:
        for number in range(self._kept - 1, 0, -1):
            older = self._path if number == 1 else self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
