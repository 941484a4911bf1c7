"""Termination of an attempt: its slots are cancelled or killed, and its unfinished checkpoint files deleted."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.common.job_status import JobStatus
from firesteel.jobmaster import executions
from firesteel.jobmaster.job_record import JobRecord
from firesteel.jobmaster.model.instructions import KillAttempt, PartInstruction, RemoveLeftovers, Say
from firesteel.jobmaster.model.settings import JobMasterSettings
from firesteel.jobmaster.model.timers import Timer
from firesteel.jobmaster.model.wall_clock import WallClock
from firesteel.runtime.model import messages

__all__ = ["WindingDown"]


class WindingDown(JobRecord):
    """Steps 5 to 8 of an attempt; see `JobMaster`."""

    settings: JobMasterSettings

    def __init__(self, wall_clock: WallClock) -> None:
        super().__init__(wall_clock)
        self._killed = self._suspends = False
        self._wind_down_reason = ""
        self._cleaned: int | None = None
        """The attempt whose leftovers have been deleted, or are being deleted."""

    def _start_attempt(self) -> None:
        raise NotImplementedError

    def _finish(self, status: JobStatus) -> None:
        raise NotImplementedError

    def _perform(self, instructions: Iterable[PartInstruction]) -> None:
        raise NotImplementedError

    def _wind_down(self, reason: str) -> None:
        self._wind_down_reason = reason
        self.slots.end_attempt()
        self._perform(self.checkpoints.end_attempt(reason, self._now))
        self._cancel_timers(Timer.SLOT_REQUEST, Timer.HEARTBEAT, Timer.FAILURE_GRACE, Timer.SHUTDOWN)
        self._close_sources()
        executions.cancel_all(self.execution_graph, self._wall)
        if self._pool is not None:
            for slot in self._pool.live():
                self._send(slot.index, self._cancellation())
            if not self._pool.ended and self.settings.cancellation_timeout:
                self._set_timer(Timer.CANCELLATION, self.settings.cancellation_timeout)
        elif self.status is JobStatus.RESTARTING:
            # it has not asked for slots: others must not wait until it does
            self._out.append(KillAttempt(self.attempt, reason))
        self._wind_down_further()

    def _cancellation(self) -> messages.CancelSlot:
        return messages.CancelSlot(self._wind_down_reason, job_is_over=self.status is not JobStatus.RESTARTING)

    def _wind_down_further(self) -> None:
        pool = self._pool
        if pool is not None and not pool.departed:
            if not pool.live():
                self._kill("the remaining slots cannot be stopped")
            return
        executions.end_all(self.execution_graph, self._wall)
        if self.status is JobStatus.FAILING:
            self._finish(JobStatus.FAILED)
        elif self.status is JobStatus.CANCELLING:
            self._finish(JobStatus.SUSPENDED if self._suspends else JobStatus.CANCELED)
        elif pool is None or pool.ended:
            # Only now are the resources free that the next attempt needs.
            self._cancel_timers(Timer.CANCELLATION, Timer.KILL)
            self._clean_up()
            if not self._timers.is_set(Timer.RESTART) and not self._timers.is_set(Timer.LEFTOVERS):
                self._start_attempt()

    def _kill(self, reason: str) -> None:
        if self._pool is None or self._pool.ended or self._killed:
            return
        self._killed = True
        self._cancel_timers(Timer.CANCELLATION)
        self._out.append(KillAttempt(self.attempt, reason))
        self._set_timer(Timer.KILL, self.settings.kill_timeout)

    def _clean_up(self) -> None:
        """Has the files of the attempt deleted that no checkpoint needs, once, while no slot writes any."""
        if self.settings.storage_token is None or self._cleaned == self.attempt:
            return
        self._cleaned = self.attempt
        coordinator = self.checkpoints.coordinator
        self._out.append(RemoveLeftovers(self.attempt, coordinator.needed_files(), coordinator.retained_paths))
        self._set_timer(Timer.LEFTOVERS, self.settings.leftovers_timeout)

    def _on_leftovers_removed(self, attempt: int) -> None:
        if attempt == self._cleaned and self.status is JobStatus.RESTARTING:
            self._cancel_timers(Timer.LEFTOVERS)
            self._wind_down_further()

    def _on_leftovers_timeout(self) -> None:
        seconds = self.settings.leftovers_timeout / 1000
        self._out.append(
            Say(
                f"The checkpoint storage did not respond within {seconds:g} s. The job is restarted anyway; files of "
                "the last attempt are deleted later."
            )
        )
        self._wind_down_further()
