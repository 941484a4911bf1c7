"""Locks and threads of a simulated process, with the interfaces of `threading`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from typing_extensions import Self

from firesteel.testing.simulation.machine import scheduler
from firesteel.testing.simulation.machine.scheduler import Scheduler, Thread, microseconds

__all__ = ["Lock", "RLock", "SimulatedThread"]

_NEVER = -1


class Lock:
    """A lock between simulated threads; outside of a simulation one that is never contended."""

    __slots__ = ("_held", "_scheduler", "_waiting")

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._held = False
        self._waiting: deque[tuple[Thread, int]] = deque()

    def acquire(self, blocking: bool = True, timeout: float = _NEVER) -> bool:
        """Takes the lock; whether it has it."""
        if not self._held:
            self._held = True
            return True
        if not blocking:
            return False
        simulation = self._scheduler
        thread = simulation.this_thread()
        if thread is None:
            raise scheduler.SimulationError("a lock is held by a simulated thread that does not run now")
        deadline = None if timeout is None or timeout < 0 else simulation.now + microseconds(timeout)
        while self.locked():
            left = None if deadline is None else deadline - simulation.now
            if left is not None and left <= 0:
                return False
            self._waiting.append((thread, thread.token))
            simulation.wait(left)
        self._held = True
        return True

    def release(self) -> None:
        """Releases it; the longest waiting thread is woken, but another one may be faster."""
        if not self._held:
            thread = self._scheduler.this_thread()
            if thread is not None and not thread.process.alive:
                return  # it was killed while it waited for the lock
            raise RuntimeError("release unlocked lock")
        self._held = False
        waiting = self._waiting
        while waiting:
            thread, token = waiting.popleft()
            if thread.token == token and not thread.ended:
                self._scheduler.wake(thread, token)
                return

    def locked(self) -> bool:
        """Whether a thread holds it."""
        return self._held

    def __enter__(self) -> bool:
        if not self._held:
            self._held = True
            return True
        return self.acquire()

    def __exit__(self, *_exception: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._held = False


class RLock:
    """A lock that its owner can take again."""

    def __init__(self, scheduler: Scheduler):
        self._lock = Lock(scheduler)
        self._scheduler = scheduler
        self._owner: Thread | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = _NEVER) -> bool:
        """Takes the lock once more; whether it has it."""
        thread = self._scheduler.this_thread()
        if self._count and self._owner is thread:
            self._count += 1
            return True
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner, self._count = thread, 1
        return True

    def release(self) -> None:
        """Gives it back once."""
        if not self._is_owned():
            thread = self._scheduler.this_thread()
            if thread is not None and not thread.process.alive:
                return
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_exception: object) -> None:
        self.release()

    # for threading.Condition

    def _is_owned(self) -> bool:
        return self._count > 0 and self._owner is self._scheduler.this_thread()

    def _release_save(self) -> tuple[int, Thread | None]:
        saved = self._count, self._owner
        self._count, self._owner = 0, None
        self._lock.release()
        return saved

    def _acquire_restore(self, saved: tuple[int, Thread | None]) -> None:
        self._lock.acquire()
        self._count, self._owner = saved

    def _at_fork_reinit(self) -> None:
        self._count, self._owner = 0, None


class SimulatedThread:
    """What `threading.Thread` is in a simulated process."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ):
        simulation = scheduler.current
        assert simulation is not None
        running = simulation.this_thread()
        assert running is not None
        self._scheduler = simulation
        self._process = running.process
        self._target = target
        self._args = tuple(args)
        self._kwargs = dict(kwargs or {})
        self._thread: Thread | None = None
        self._number = simulation.next_number()
        self.name: str = name or str(getattr(target, "__name__", "thread"))
        self.daemon = bool(daemon)

    def __hash__(self) -> int:
        """Not its address: an executor joins its threads in the order of a set."""
        return self._number

    @classmethod
    def of(cls, thread: Thread) -> Self:
        """What `threading.current_thread()` is in a thread."""
        if thread.public is not None:
            return thread.public  # type: ignore[no-any-return]
        made = cls.__new__(cls)
        made._scheduler, made._process, made._thread = thread.process.scheduler, thread.process, thread
        made._target, made._args, made._kwargs, made.name, made.daemon = None, (), {}, thread.name, True
        made._number = thread.process.scheduler.next_number()
        thread.public = made
        return made

    def start(self) -> None:
        """Starts it."""
        if self._thread is not None:
            raise RuntimeError("threads can only be started once")
        self._thread = self._process.start(self.run, self.name)
        self._thread.public = self

    def run(self) -> None:
        """Calls the function."""
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def join(self, timeout: float | None = None) -> None:
        """Waits until it has ended."""
        thread, simulation = self._thread, self._scheduler
        running = simulation.this_thread()
        if thread is None or running is None or running is thread:
            return
        deadline = None if timeout is None else simulation.now + microseconds(timeout)
        while not thread.ended and thread.process.alive:
            left = None if deadline is None else deadline - simulation.now
            if left is not None and left <= 0:
                return
            thread.joining.append((running, running.token))
            simulation.wait(left)

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._thread is not None and not self._thread.ended

    @property
    def ident(self) -> int | None:
        """A number that no other thread has."""
        return None if self._thread is None else self._thread.ident

    native_id = ident


def thread_class(real: type[threading.Thread]) -> type[threading.Thread]:
    """A class to be put in the place of `threading.Thread`: it makes simulated threads in simulated ones."""

    class Thread(real):  # type: ignore[valid-type, misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            simulation = scheduler.current
            if simulation is not None and simulation.this_thread() is not None:
                return SimulatedThread(*args, **kwargs)
            return super().__new__(cls)

    return Thread
