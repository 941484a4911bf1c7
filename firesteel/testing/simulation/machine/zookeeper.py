"""A ZooKeeper ensemble of a simulated cluster, and clients of it with the interface of kazoo.

Sessions live as long as their client sends heartbeats. A request that a client makes while it cannot reach the ensemble
fails when it notices that; it is then unknown whether it was executed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kazoo.client import KazooState
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    QuotaExceededError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from typing_extensions import Self

from firesteel.cluster.ha import zookeeper
from firesteel.testing.simulation.machine.network import Network
from firesteel.testing.simulation.machine.scheduler import Machine, Process, Scheduler, Thread, microseconds
from firesteel.testing.simulation.machine.standard_library import replaced

__all__ = ["Ensemble", "simulated_zookeeper"]


@dataclass
class _Node:
    data: bytes
    version: int = 0
    owner: int = 0
    """The session that it goes with; 0 for none."""
    children: int = 0


class Ensemble:
    """Nodes by path, sessions, and watches."""

    def __init__(self, simulation: Scheduler, network: Network, machine: Machine):
        self.simulation = simulation
        self.network = network
        self.machine = machine
        self.down = False
        self.refuses_writes = False
        self.nodes: dict[str, _Node] = {}
        self._sessions: dict[int, tuple[int, int]] = {}
        """When each was heard of last, and how long it may be silent."""
        self._numbers = itertools.count(1)
        self._watches: dict[str, list[Callable[[], None]]] = {}

    def reaches(self, machine: Machine) -> bool:
        """Whether a machine and the ensemble reach each other."""
        cut = self.network.is_cut(machine, self.machine) or self.network.is_cut(self.machine, machine)
        return not self.down and not cut

    # -- sessions -----------------------------------------------------------------------------------

    def open_session(self, timeout_us: int) -> int:
        """A new session."""
        session = next(self._numbers)
        self._sessions[session] = self.simulation.now, timeout_us
        self.simulation.after(timeout_us, lambda: self._look(session))
        return session

    def touch(self, session: int) -> bool:
        """A heartbeat of a client; returns whether its session still lasts."""
        if session not in self._sessions:
            return False
        self._sessions[session] = self.simulation.now, self._sessions[session][1]
        return True

    def close_session(self, session: int) -> None:
        """Ends a session: its nodes go."""
        if self._sessions.pop(session, None) is not None:
            for path in [path for path, node in self.nodes.items() if node.owner == session]:
                self._delete(path)

    def _look(self, session: int) -> None:
        if session not in self._sessions:
            return
        heard, timeout = self._sessions[session]
        left = heard + timeout - self.simulation.now
        if self.down:
            # sessions do not expire while the ensemble is down; all get their full timeout again
            self._sessions[session] = self.simulation.now, timeout
            left = timeout
        if left > 0:
            self.simulation.after(left, lambda: self._look(session))
        else:
            self.simulation.tell("zookeeper", f"session {session} expires")
            self.close_session(session)

    # -- nodes --------------------------------------------------------------------------------------

    def execute(self, session: int, operation: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Does what a client asks for."""
        if not self.touch(session):
            raise SessionExpiredError
        return getattr(self, f"_do_{operation}")(session, *arguments, **options)

    def _do_exists(self, _session: int, path: str, watch: Callable[[], None] | None = None) -> Any:
        if watch is not None:
            self._watches.setdefault(path, []).append(watch)
        node = self.nodes.get(path)
        return None if node is None else SimpleNamespace(version=node.version)

    def _do_get(self, _session: int, path: str) -> Any:
        node = self._find(path)
        return node.data, SimpleNamespace(version=node.version)

    def _do_get_children(self, _session: int, path: str) -> list[str]:
        self._find(path)
        prefix = f"{path}/"
        return [
            name[len(prefix) :] for name in self.nodes if name.startswith(prefix) and "/" not in name[len(prefix) :]
        ]

    def _do_ensure_path(self, session: int, path: str) -> None:
        parts = path.strip("/").split("/")
        for length in range(1, len(parts) + 1):
            self.nodes.setdefault("/" + "/".join(parts[:length]), _Node(b""))

    def _do_sync(self, _session: int, path: str) -> str:
        return path

    def _do_create(
        self,
        session: int,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        makepath: bool = False,
    ) -> str:
        above = path.rpartition("/")[0]
        if makepath and above:
            self._do_ensure_path(session, above)
        node = self._find(above)
        if sequence:
            path = f"{path}{node.children:010}"
            node.children += 1
        if path in self.nodes:
            raise NodeExistsError
        self.nodes[path] = _Node(data, owner=session if ephemeral else 0)
        return path

    def _do_set(self, _session: int, path: str, data: bytes, version: int = -1) -> Any:
        node = self._find(path, version)
        node.data = data
        node.version += 1
        return SimpleNamespace(version=node.version)

    def _do_delete(self, _session: int, path: str, version: int = -1) -> bool:
        self._find(path, version)
        self._delete(path)
        return True

    def _do_check(self, _session: int, path: str, version: int) -> bool:
        self._find(path, version)
        return True

    def _do_transaction(self, session: int, operations: list[tuple[str, tuple[Any, ...]]]) -> list[Any]:
        if self.refuses_writes:
            return [*(RolledBackError() for _ in operations[:-1]), QuotaExceededError()]
        before = {path: _Node(node.data, node.version, node.owner, node.children) for path, node in self.nodes.items()}
        results: list[Any] = []
        for number, (operation, arguments) in enumerate(operations):
            try:
                results.append(getattr(self, f"_do_{operation}")(session, *arguments))
            except KazooException as error:
                self.nodes = before
                rest = len(operations) - number - 1
                return [*(RolledBackError() for _ in results), error, *(RuntimeInconsistency() for _ in range(rest))]
        return results

    def _find(self, path: str, version: int = -1) -> _Node:
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError
        if version not in (-1, node.version):
            raise BadVersionError
        return node

    def _delete(self, path: str) -> None:
        del self.nodes[path]
        for watch in self._watches.pop(path, ()):
            watch()


class _Answer:
    """What a question will be answered with."""

    def __init__(self, client: _Client):
        self._client = client
        self._done = False
        self._value: Any = None
        self._error: Exception | None = None
        self._waiting: list[tuple[Thread, int]] = []

    def complete(self, value: Any = None, error: Exception | None = None) -> None:
        """Here it is."""
        if not self._done:
            self._done, self._value, self._error = True, value, error
            for thread, token in self._waiting:
                self._client.simulation.wake(thread, token)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Waits for it."""
        simulation = self._client.simulation
        thread = simulation.this_thread()
        assert thread is not None
        deadline = None if timeout is None else simulation.now + microseconds(timeout)
        while not self._done:
            left = None if deadline is None else deadline - simulation.now
            if left is not None and left <= 0:
                raise KazooTimeoutError("timeout")
            self._waiting.append((thread, thread.token))
            simulation.wait(left)
        if self._error is not None:
            raise self._error
        return self._value


class _Client:
    """As much of a KazooClient as leader election and job store use."""

    def __init__(self, ensemble: Ensemble, timeout: float):
        self._ensemble = ensemble
        self.simulation = ensemble.simulation
        thread = self.simulation.this_thread()
        assert thread is not None
        self._process: Process = thread.process
        self._timeout_us = microseconds(timeout)
        self._session = 0
        self._heard = 0
        self._state = KazooState.LOST
        self._listeners: list[Callable[[str], Any]] = []
        self._pending: list[_Answer] = []
        self._stopped = False

    # -- life ---------------------------------------------------------------------------------------

    def start(self, timeout: float) -> None:
        """Connects."""
        deadline = self.simulation.now + microseconds(timeout)
        while not self._ensemble.reaches(self._process.machine):
            if self.simulation.now >= deadline:
                raise KazooTimeoutError("Connection time-out")
            self.simulation.sleep(100_000)
        self._travel()
        self._connect()
        self._process.start(self._keep_alive, "kazoo")

    def stop(self) -> None:
        """Ends the session."""
        if not self._stopped:
            self._stopped = True
            if self._ensemble.reaches(self._process.machine):
                self._ensemble.close_session(self._session)

    def close(self) -> None:
        """Nothing is left to close."""

    def add_listener(self, listener: Callable[[str], Any]) -> None:
        """Reports each change of the connection."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[str], Any]) -> None:
        """No longer."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _connect(self) -> None:
        self._session = self._ensemble.open_session(self._timeout_us)
        self._heard = self.simulation.now
        self._change(KazooState.CONNECTED)

    def _travel(self) -> None:
        self.simulation.sleep(self._ensemble.network.latency(self._process.machine, self._ensemble.machine))

    def _keep_alive(self) -> None:
        while True:
            self.simulation.sleep(self._timeout_us // 3)
            if self._stopped:
                return
            if self._ensemble.reaches(self._process.machine):
                self._travel()
                if self._ensemble.touch(self._session):
                    self._heard = self.simulation.now
                    self._change(KazooState.CONNECTED)
                else:
                    self._change(KazooState.LOST)
                    self._fail_pending(SessionExpiredError())
                    self._connect()
            elif self.simulation.now - self._heard >= self._timeout_us * 2 // 3:
                self._change(KazooState.SUSPENDED)
                self._fail_pending(ConnectionLoss())

    def _change(self, state: str) -> None:
        if state != self._state:
            self._state = state
            for listener in list(self._listeners):
                listener(state)

    def _fail_pending(self, error: Exception) -> None:
        pending, self._pending = self._pending, []
        for answer in pending:
            answer.complete(error=error)

    # -- questions ----------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        operation = name.removesuffix("_async")
        if operation == name:
            raise AttributeError(name)
        return lambda *arguments, **options: self._ask(operation, arguments, options)

    def transaction(self) -> _Transaction:
        """Operations of which all are done, or none."""
        return _Transaction(self)

    def _ask(self, operation: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> _Answer:
        simulation, ensemble, process = self.simulation, self._ensemble, self._process
        simulation.check_alive()
        answer = _Answer(self)
        if self._state != KazooState.CONNECTED:
            answer.complete(error=ConnectionLoss())
            return answer
        self._pending.append(answer)
        watch = options.get("watch")
        if watch is not None:
            options = {**options, "watch": lambda: self._announce(watch)}
        session = self._session

        def reply(value: Any, error: Exception | None) -> None:
            if process.alive and ensemble.reaches(process.machine):
                if answer in self._pending:
                    self._pending.remove(answer)
                self._heard = simulation.now
                answer.complete(value, error)

        def arrive() -> None:
            if not ensemble.reaches(process.machine):
                return
            value: Any = None
            error: Exception | None = None
            try:
                value = ensemble.execute(session, operation, arguments, options)
            except KazooException as raised:
                error = raised
            back = ensemble.network.latency(ensemble.machine, process.machine)
            simulation.after(back, lambda: reply(value, error))

        simulation.after(ensemble.network.latency(process.machine, ensemble.machine), arrive)
        return answer

    def _announce(self, watch: Callable[[Any], None]) -> None:
        def tell() -> None:
            if self._process.alive and self._ensemble.reaches(self._process.machine):
                self._process.start(lambda: watch(None), "kazoo-watch")

        self.simulation.after(self._ensemble.network.latency(self._ensemble.machine, self._process.machine), tell)


class _Transaction:
    def __init__(self, client: _Client):
        self._client = client
        self._operations: list[tuple[str, tuple[Any, ...]]] = []

    def _add(self, operation: str, *arguments: Any) -> Self:
        self._operations.append((operation, arguments))
        return self

    def check(self, path: str, version: int) -> Self:
        return self._add("check", path, version)

    def create(self, path: str, data: bytes = b"") -> Self:
        return self._add("create", path, data)

    def set_data(self, path: str, data: bytes, version: int = -1) -> Self:
        return self._add("set", path, data, version)

    def delete(self, path: str, version: int = -1) -> Self:
        return self._add("delete", path, version)

    def commit_async(self) -> _Answer:
        return self._client._ask("transaction", (self._operations,), {})


@contextmanager
def simulated_zookeeper(ensemble: Ensemble) -> Iterator[None]:
    """While it lasts, JobManagers reach that ensemble, for any configured quorum."""

    def client(*, timeout: float, **_options: Any) -> _Client:
        return _Client(ensemble, timeout)

    with replaced(zookeeper, KazooClient=client):
        yield
