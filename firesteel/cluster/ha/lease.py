"""Leader lease: how long a leader may continue without a renewal."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from firesteel.cluster.ha.services import FencedError
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency

__all__ = ["Lease", "clock_with_sleep"]

_log = logging.getLogger(__name__)
_RENEWALS_PER_DURATION = 5
"""Per duration, so that several may fail."""


def clock_with_sleep() -> float:
    """Seconds that also go by while the machine sleeps, where the system has such a clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Lease:
    """Renews a claim to lead from a thread, and reports when it is no longer valid.

    ``renew`` raises FencedError if another one leads. If it fails otherwise, it is tried again until the lease has run
    out; then leadership is lost. If it succeeds late, because the process was stopped or the storage was slow, no other
    JobManager has taken over yet. But another one may have seen just before that the lease had run out, and be about
    to: the lease is valid again when it has been renewed once more.
    """

    def __init__(
        self,
        duration_s: float,
        renew: Callable[[], None],
        *,
        clock: Callable[[], float] = clock_with_sleep,
        concurrency: Concurrency = SYSTEM,
    ):
        self._duration = duration_s
        self._renew = renew
        self._clock = clock
        self._deadline = clock() + duration_s
        self._suspended = False
        self._over: str | None = None
        self._on_lost: Callable[[str], None] | None = None
        self._lock = threading.Lock()
        self._concurrency = concurrency
        self._stop = concurrency.event()
        self._hurry = concurrency.event()
        self._thread: BackgroundThread | None = None
        self._thread_id: int | None = None

    def start(self) -> None:
        """Renews from now on."""
        self._thread = self._concurrency.start(self._run, name="firesteel-lease")

    def announce_to(self, on_lost: Callable[[str], None]) -> None:
        """Sets the callback for the loss of leadership; FencedError if it is already lost."""
        with self._lock:
            if self._over is not None:
                raise FencedError(f"Leadership was lost before it started: {self._over}.")
            self._on_lost = on_lost

    def is_valid(self) -> bool:
        """Whether no other JobManager can have taken over yet."""
        return self._over is None and not self._suspended and self._clock() < self._deadline

    @property
    def is_over(self) -> bool:
        """Whether leadership is lost or was given up, for good."""
        return self._over is not None

    def suspend(self) -> None:
        """Not valid until it has been renewed."""
        self._suspended = True

    def hurry(self) -> None:
        """Renews it now, in the renewing thread: it is likely to succeed."""
        self._hurry.set()

    def lose(self, reason: str) -> None:
        """Leadership is lost; the callback is called once, before this returns."""
        with self._lock:
            if self._over is not None:
                return
            self._over = reason
            on_lost = self._on_lost
        self._halt()
        if on_lost is not None:
            on_lost(reason)

    def end(self) -> None:
        """Ends it on purpose: the callback is not called."""
        with self._lock:
            if self._over is None:
                self._over = "given up"
        self._halt()
        if self._thread is not None and self._thread_id != threading.get_ident():
            self._thread.join(self._duration)

    def tick(self) -> None:
        """Renews it once."""
        begun = self._clock()
        try:
            self._renew()
        except FencedError as error:
            self.lose(error.message)
        except Exception as error:  # noqa: BLE001 - another attempt may succeed
            _log.warning("The leader lease could not be renewed: %s", error)
            if self._clock() >= self._deadline:
                self.lose(f"the leader lease could not be renewed for {self._duration:g} s: {error}")
        else:
            late_s = self._clock() - self._deadline
            if late_s >= 0:
                _log.warning("The leader lease was renewed %.1f s late; no other JobManager has taken over.", late_s)
            self._deadline = begun + self._duration
            self._suspended = late_s >= 0

    def _halt(self) -> None:
        self._stop.set()
        self._hurry.set()

    def _run(self) -> None:
        self._thread_id = threading.get_ident()
        while True:
            self._hurry.wait(self._duration / _RENEWALS_PER_DURATION)
            self._hurry.clear()
            if self._stop.is_set():
                return
            self.tick()
