"""AttemptHost whose attempts wait in a queue until enough slots are free."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any

from firesteel.common.errors import NotEnoughSlotsError, TaskFailure
from firesteel.filesystem.stores import current_stores
from firesteel.jobmaster.model.events import AttemptEnded, Event, MessageReceived, SlotsAvailable, SlotsQueued
from firesteel.jobmaster.model.host import Attempt, AttemptHost, Post
from firesteel.jobmaster.shell.host_calls import host_failure
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.jobmaster.slots.ledger import SlotPlace
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency
from firesteel.runtime.model.messages import JobMasterMessage, RegisterSlot

__all__ = ["QueuedHost"]

_log = logging.getLogger(__name__)
_WATCH_INTERVAL_S = 1.0


class QueuedHost:
    """Gets slots for the attempts of another host before it starts them, and keeps them until it is closed.

    An attempt for which there are none yet waits in a thread, and reports its place to the JobMaster (SlotsQueued); it
    can be killed meanwhile. ``is_elastic`` hosts run their tasks one after the other where slots are few: they start
    with one. ``task_manager`` is where slots run that do not know it themselves.
    """

    def __init__(
        self,
        inner: AttemptHost,
        slots: SlotAllocator,
        job_id: str,
        *,
        is_elastic: bool = False,
        task_manager: str = "",
        concurrency: Concurrency = SYSTEM,
    ):
        self._inner = inner
        self._slots = slots
        self._job_id = job_id
        self._is_elastic = is_elastic
        self._task_manager = task_manager
        self._concurrency = concurrency
        self._lock = threading.Lock()
        self._waiting: int | None = None
        """The attempt that waits."""
        self._end = concurrency.event()
        self._threads: list[BackgroundThread] = []

    def take_place(self) -> None:
        """Takes the job's place in the queue now; its first attempt asks for slots later, in a thread of its own."""
        self._slots.join(self._job_id)

    # -- AttemptHost --------------------------------------------------------------------------------

    def start(self, attempt: Attempt, post: Post) -> None:
        """Starts the attempt as soon as there are slots for it."""
        post = self._completing(post)
        needed = 1 if self._is_elastic else attempt.slots
        if self._slots.is_fixed and needed > self._slots.total:
            # none will ever come, so that it need not wait, nor others behind it; as if it had started and failed
            self._slots.withdraw(self._job_id)
            post(AttemptEnded(attempt.number, _never_enough(needed, self._slots.total)))
        elif self._slots.request(self._job_id, needed, attempt.slots):
            self._inner.start(attempt, post)
        else:
            self._waiting = attempt.number
            self._start_thread(self._wait, "firesteel-slot-queue", attempt, post)

    def watch_slots(self, post: Post) -> None:
        """Reports how many slots other jobs leave, in a thread of its own."""
        if self._is_elastic:
            self._inner.watch_slots(post)
        else:
            self._slots.join(self._job_id)
            self._start_thread(self._watch, "firesteel-slot-inventory", post)

    def slots_left(self) -> int | None:
        """Returns how many slots other jobs leave."""
        if self._is_elastic or self._slots.grows_on_demand:
            return self._inner.slots_left()
        return self._slots.left_for(self._job_id)

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        self._inner.send(attempt, slot, message)

    def kill(self, attempt: int, reason: str) -> None:
        """Ends the attempt, or its waiting; one that has not asked for slots gives up its place in the queue."""
        with self._lock:
            if self._waiting == attempt:
                self._waiting = None
                self._slots.wake()
                return
        self._slots.withdraw(self._job_id)
        self._inner.kill(attempt, reason)

    def close(self) -> Any:
        """Closes the inner host, then lets others have the slots."""
        with self._lock:
            self._waiting = None
        self._end.set()
        self._slots.wake()
        try:
            for thread in self._threads:
                thread.join(10.0)
            return self._inner.close()
        finally:
            self._slots.release(self._job_id)

    # -- threads ------------------------------------------------------------------------------------

    def _start_thread(self, target: Any, name: str, *args: object) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(self._concurrency.start(current_stores().bind(target), *args, name=name))

    def _wait(self, attempt: Attempt, post: Post) -> None:
        number = attempt.number

        def tell(place: SlotPlace) -> None:
            post(SlotsQueued(number, place.ahead, place.free, place.total))

        failure: TaskFailure | None = None
        try:
            self._slots.wait(self._job_id, tell, lambda: self._waiting != number)
            with self._lock:
                if self._waiting == number:
                    self._waiting = None
                    self._inner.start(attempt, post)
                    return
        except Exception as error:  # noqa: BLE001 - Spark may be gone; the JobMaster must be notified
            failure = host_failure(error)
        self._slots.withdraw(self._job_id)
        post(AttemptEnded(number, failure))

    def _watch(self, post: Post) -> None:
        known: int | None = None
        while not self._end.is_set():
            try:
                slots = self._slots.left_for(self._job_id)
            except Exception as error:  # noqa: BLE001 - Spark may answer the next time
                _log.debug("The number of slots could not be determined: %s", error)
            else:
                if slots != known:
                    known = slots
                    post(SlotsAvailable(slots))
            self._end.wait(_WATCH_INTERVAL_S)

    def _completing(self, post: Post) -> Post:
        """Adds the TaskManager to the messages of slots that a host in this process simulates."""
        if not self._task_manager:
            return post

        def complete(event: Event) -> None:
            if isinstance(event, MessageReceived) and isinstance(event.message, RegisterSlot):
                event = replace(event, message=replace(event.message, task_manager=self._task_manager))
            post(event)

        return complete


def _never_enough(needed: int, total: int) -> TaskFailure:
    error = NotEnoughSlotsError(
        needed,
        total,
        0,
        hint=f"Lower the parallelism to {total}, or give Spark more cores: spark.master=local[{needed}], or on a "
        f"cluster taskmanager.numberOfTaskSlots={needed}.",
        is_final=True,
    )
    return TaskFailure(error.message, error_type="NotEnoughSlotsError", hint=error.hint, cause=error)
