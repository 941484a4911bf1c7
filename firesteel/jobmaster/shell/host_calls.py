"""Asynchronous calls to the host of a job, outside the JobMaster's thread."""

from __future__ import annotations

import logging
from dataclasses import replace

from firesteel.common.errors import FiresteelError, HostError, TaskFailure
from firesteel.filesystem.stores import Stores
from firesteel.jobmaster.model.end_of_job import retry_delay_ms
from firesteel.jobmaster.model.events import AttemptAccepted, AttemptEnded, Event, SlotLost
from firesteel.jobmaster.model.host import Attempt, AttemptHost, Post
from firesteel.jobmaster.shell.serial_worker import SerialWorker
from firesteel.process.concurrency import Concurrency
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model.messages import JobMasterMessage

__all__ = ["HostCalls", "host_failure"]

_log = logging.getLogger(__name__)
_ANSWER_TIMEOUT_S = 5.0
_SENDS_TIMEOUT_S = 5.0
"""How long the end of a job waits for what is still to be sent."""
_CLOSE_TIMEOUT_S = 60.0
"""How long it waits until the host is closed."""


class HostCalls:
    """An AttemptHost none of whose calls raises or holds up the caller.

    Attempts are started and killed in order, and messages are sent in order, in a thread each. What goes wrong becomes
    an event: an attempt that could not be started has ended because of the host, and a slot that nothing can be sent
    to is lost. A kill that fails is logged; the JobMaster does not wait for its effect without end.

    A slot ends itself if nothing is sent to it for ``heartbeat.timeout``. If one is lost while messages are held up, or
    so soon after, the host is to blame.
    """

    def __init__(self, host: AttemptHost, post: Post, concurrency: Concurrency, stores: Stores, heartbeat_s: float):
        self._host = host
        self._post = post
        self._concurrency = concurrency
        self._stores = stores
        self._heartbeat_s = heartbeat_s
        self._control = SerialWorker(concurrency, "firesteel-host-calls", stores)
        slow_s = min(_ANSWER_TIMEOUT_S, heartbeat_s / 2)
        self._sends = SerialWorker(concurrency, "firesteel-host-sends", stores, slow_s)
        self._closed = concurrency.event()

    @property
    def is_idle(self) -> bool:
        """Whether all calls have returned."""
        return self._control.is_idle and self._sends.is_idle

    @property
    def answers(self) -> bool:
        """Whether no call has taken so long that the host must be taken for hung."""
        return max(self._control.busy_for_s, self._sends.busy_for_s) < _ANSWER_TIMEOUT_S

    def start(self, attempt: Attempt) -> None:
        """Starts an attempt; AttemptAccepted or AttemptEnded follows."""
        self._control.submit(self._start, attempt)

    def kill(self, attempt: int, reason: str) -> None:
        self._control.submit(self._kill, attempt, reason)

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        self._sends.submit(self._send, attempt, slot, message)

    def watch_slots(self) -> None:
        """Requests the number of slots from the host."""
        self._concurrency.start(self._stores.bind(self._watch_slots), name="firesteel-watch-slots")

    def slots_left(self) -> int | None:
        """Returns how many slots the job may have now, as the host reports it; in the caller's thread."""
        return self._host.slots_left()

    def close(self) -> None:
        """Makes the calls that are left, and closes the host; waits for both, but not without end."""
        self._closed.set()
        self._sends.close(_SENDS_TIMEOUT_S)
        self._control.submit(self._close)
        if not self._control.close(_CLOSE_TIMEOUT_S):
            _log.warning("The host of the job's slots was not closed within %g s.", _CLOSE_TIMEOUT_S)

    # -- in the threads -----------------------------------------------------------------------------

    def _start(self, attempt: Attempt) -> None:
        try:
            self._host.start(attempt, self._hear)
        except BaseException as error:  # noqa: BLE001 - an error of the host is not the job's fault
            # in this order: the end of an attempt that was started all the same is not the cause
            self._post(AttemptEnded(attempt.number, host_failure(error)))
            self._kill(attempt.number, "the attempt could not be started")
        else:
            self._post(AttemptAccepted(attempt.number))

    def _hear(self, event: Event) -> None:
        if isinstance(event, SlotLost) and self._sends.was_slow(self._heartbeat_s):
            event = replace(event, by_host=True)
        self._post(event)

    def _kill(self, attempt: int, reason: str) -> None:
        try:
            self._host.kill(attempt, reason)
        except BaseException as error:  # noqa: BLE001 - as above
            _log.warning("Attempt %d could not be killed: %s: %s", attempt, type(error).__name__, error)

    def _send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        try:
            self._host.send(attempt, slot, message)
        except BaseException as error:  # noqa: BLE001 - as above
            reason = f"nothing can be sent to it: {type(error).__name__}: {error}"
            self._post(SlotLost(attempt, slot, reason, by_host=True))

    def _watch_slots(self) -> None:
        failures = 0
        while not self._closed.is_set():
            try:
                self._host.watch_slots(self._post)
            except Exception as error:  # noqa: BLE001 - as above
                failures += 1
                _log.warning("The number of slots could not be determined: %s: %s", type(error).__name__, error)
                self._closed.wait(retry_delay_ms(failures) / 1000)
            else:
                return

    def _close(self) -> None:
        try:
            self._host.close()
        except BaseException as error:  # noqa: BLE001 - as above
            _log.warning("The host of the job's slots could not be closed: %s: %s", type(error).__name__, error)


def host_failure(error: BaseException) -> TaskFailure:
    """The failure of an attempt that the host is to blame for, except for errors like too few slots."""
    failure = describe_failure(error)
    cause: FiresteelError = HostError(f"{type(error).__name__}: {error}")
    if isinstance(error, FiresteelError) and (isinstance(error, HostError) or not error.is_transient):
        cause = error
    return TaskFailure(failure.message, failure.error_type, hint=failure.hint, traceback=failure.traceback, cause=cause)
