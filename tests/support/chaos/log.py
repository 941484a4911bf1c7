"""The input of a chaos run as it grows."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support.chaos.job import write_limit

__all__ = ["GrowingLog"]

RECORDS_PER_S = 400
INTERVAL_S = 0.05


class GrowingLog:
    """Lets the job's input grow at a steady rate, whatever becomes of the job."""

    def __init__(self, path: Path):
        self.count = 0
        self._path = path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._grow, name="chaos-log", daemon=True)
        write_limit(path, 0, False)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)

    def finish(self) -> int:
        """No more records; how many there are."""
        self.stop()
        return self.count

    def _grow(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            self.count += round(RECORDS_PER_S * INTERVAL_S)
            write_limit(self._path, self.count, False)
