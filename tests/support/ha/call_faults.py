"""Calls that leave the JobManager, made to fail: to hosts, the job store, the checkpoint storage, and Spark.

The calls are found in the interfaces themselves. One that is added to an interface is covered from then on.
"""

from __future__ import annotations

import errno
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

from firesteel.cluster import jobmanager
from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.ha.services import JobStore
from firesteel.jobmaster.model.host import AttemptHost
from firesteel.runtime.checkpoint import storage as checkpoint_storage
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.spark import host_creation
from firesteel.testing.simulation import spark as simulated_spark
from firesteel.testing.simulation.machine.scheduler import Scheduler
from firesteel.testing.simulation.machine.standard_library import replaced

__all__ = ["CALLS", "MODES", "CallFaults"]

MODES = ("raises", "half way", "dies", "hangs")
"""An error instead of the call; an error after it; an error that no handler of errors expects; no answer."""
_SPARK = (simulated_spark.SimulatedSparkContext, simulated_spark._Rdds, simulated_spark._Java)
_HANG_US = 500_000


def _public(owner: Any) -> list[str]:
    """The names of the functions of a class, or that a module exports."""
    names = owner.__all__ if inspect.ismodule(owner) else vars(owner)
    found = [name for name in names if not name.startswith("_") and inspect.isroutine(getattr(owner, name))]
    return sorted(found)


CALLS: tuple[tuple[str, str], ...] = (
    *(("host", name) for name in _public(AttemptHost)),
    *(("store", name) for name in _public(JobStore)),
    *(("storage", name) for name in sorted({*_public(checkpoint_storage), *_public(CheckpointStorage)})),
    *(("spark", name) for name in sorted({name for owner in _SPARK for name in _public(owner)})),
)
"""Interface and name of each call."""


class CallFaults:
    """Makes one call fail for as long as it is told to, in JobManagers only."""

    def __init__(self, simulation: Scheduler):
        self._simulation = simulation
        self._fault: tuple[str, str, str] | None = None
        self.met = 0
        """How often the call was made while it failed."""

    def begin(self, surface: str, name: str, mode: str) -> None:
        """From now on the call fails."""
        self._fault = surface, name, mode

    def end(self) -> None:
        """No longer."""
        self._fault = None

    def _is_on(self, surface: str, name: str) -> bool:
        thread = self._simulation.this_thread()
        if self._fault is None or self._fault[:2] != (surface, name):
            return False
        return thread is not None and thread.process.alive and thread.process.name.startswith("jm-")

    def around(self, surface: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which fails when it is to."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._is_on(surface, name):
                return function(*args, **kwargs)
            assert self._fault is not None
            mode = self._fault[2]
            self.met += 1
            while mode == "hangs" and self._is_on(surface, name):
                self._simulation.sleep(_HANG_US)
            if mode in ("half way", "hangs"):
                result = function(*args, **kwargs)
                if mode == "hangs":
                    return result
            if mode == "dies":
                raise SystemExit(f"{name} has ended its thread")
            raise OSError(errno.EIO, f"{name} failed")

        return call

    def _proxy(self, surface: str, interface: type, inner: Any) -> Any:
        faults = self

        class Proxy:
            def __getattr__(self, name: str) -> Any:
                value = getattr(inner, name)
                return faults.around(surface, name, value) if name in _public(interface) else value

        return Proxy()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While it lasts, all calls of JobManagers can be made to fail."""
        create_host = host_creation.create_host

        def faulty_host(*args: Any, **kwargs: Any) -> Any:
            return self._proxy("host", AttemptHost, create_host(*args, **kwargs))

        def faulty_dispatcher(store: Any, *args: Any, **kwargs: Any) -> Dispatcher:
            return Dispatcher(self._proxy("store", JobStore, store), *args, **kwargs)

        with ExitStack() as stack:
            stack.enter_context(replaced(host_creation, create_host=faulty_host))
            stack.enter_context(replaced(jobmanager, Dispatcher=faulty_dispatcher))
            for surface, owners in (("storage", (checkpoint_storage, CheckpointStorage)), ("spark", _SPARK)):
                for owner in owners:
                    for name in _public(owner):
                        is_static = not inspect.ismodule(owner) and isinstance(vars(owner)[name], staticmethod)
                        function = self.around(surface, name, getattr(owner, name))
                        new = staticmethod(function) if is_static else function
                        stack.enter_context(_set(owner, name, new))
            yield


@contextmanager
def _set(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
