"""The network between simulated machines: connections deliver bytes in order, after a delay, unless they are cut."""

from __future__ import annotations

import errno
import itertools
import os
import socket
from collections import deque
from typing import Any

from firesteel.testing.simulation.machine import scheduler
from firesteel.testing.simulation.machine.scheduler import Machine, Process, Scheduler, Thread
from firesteel.testing.simulation.machine.sockets import WINDOW, Epoll, SimulatedSocket

__all__ = ["Direction", "Network", "socket_class"]

_LATENCY_US = (40, 400)
_SLOW_SHARE = 0.02
_SLOW_US = 30_000
_LOCAL_US = (5, 40)


class Direction:
    """One direction of a connection: what is on its way, and what has arrived and was not read."""

    def __init__(self, network: Network, source: Machine, target: Machine):
        self._network = network
        self.source = source
        self.target = target
        self.reader: SimulatedSocket | None = None
        self.writer: SimulatedSocket | None = None
        self.arrived: deque[bytes] = deque()
        self.unread = 0
        self.in_flight = 0
        self.ended = False
        """Whether the reader has all that will ever come."""
        self._last = 0
        self._held: list[bytes | None] = []

    @property
    def room(self) -> int:
        """How many bytes may be sent."""
        return WINDOW - self.unread - self.in_flight

    def send(self, data: bytes | None) -> None:
        """Sends bytes, or the end of them."""
        if data is not None:
            self.in_flight += len(data)
        if self._held or self._network.is_cut(self.source, self.target):
            self._held.append(data)
            return
        simulation = self._network.simulation
        self._last = max(simulation.now + self._network.latency(self.source, self.target), self._last + 1)
        simulation.at(self._last, None, 0, lambda: self._arrive(data))

    def _arrive(self, data: bytes | None) -> None:
        if self._held or self._network.is_cut(self.source, self.target):
            self._held.append(data)
            return
        if data is None:
            self.ended = True
        else:
            self.in_flight -= len(data)
            self.unread += len(data)
            self.arrived.append(data)
        if self.reader is not None:
            self.reader.notify()

    def released(self) -> None:
        """Delivers what was held because the machines could not reach each other."""
        held, self._held = self._held, []
        for data in held:
            if data is not None:
                self.in_flight -= len(data)
            self.send(data)

    def read(self, limit: int) -> bytes:
        """Takes bytes that have arrived."""
        if not self.arrived:
            return b""
        first = self.arrived.popleft()
        if len(first) > limit:
            self.arrived.appendleft(first[limit:])
            first = first[:limit]
        was_full = self.room <= 0
        self.unread -= len(first)
        if was_full and self.writer is not None:
            self.writer.notify()
        return first


class Network:
    """Listening sockets by address, connections, and which machines cannot reach each other."""

    def __init__(self, simulation: Scheduler):
        self.simulation = simulation
        self.listeners: dict[tuple[str, int], SimulatedSocket] = {}
        self.machines: dict[str, Machine] = {}
        self._sockets: dict[int, SimulatedSocket] = {}
        self._connections: dict[int, tuple[SimulatedSocket, SimulatedSocket]] = {}
        self._descriptors = itertools.count(100_000)
        self._ports = itertools.count(30_001)
        self._cut: set[tuple[str, str]] = set()
        self._owned: dict[int, dict[int, SimulatedSocket]] = {}

    def add_machine(self, name: str) -> Machine:
        """A machine that can be reached by its name."""
        machine = self.machines[name] = Machine(name)
        return machine

    # -- faults -------------------------------------------------------------------------------------

    def is_cut(self, one: Machine, other: Machine) -> bool:
        """Whether nothing gets from one machine to the other."""
        return bool(self._cut) and (one.name, other.name) in self._cut

    def cut(self, one: Machine, other: Machine) -> None:
        """From now on nothing gets from one machine to the other; connections stay, and wait."""
        self._cut.add((one.name, other.name))

    def heal(self, one: Machine, other: Machine) -> None:
        """What was held gets through."""
        self._cut.discard((one.name, other.name))
        for pair in list(self._connections.values()):
            for end in pair:
                direction = end.outgoing
                if direction is not None and (direction.source, direction.target) == (one, other):
                    direction.released()

    def connections(self) -> list[tuple[SimulatedSocket, SimulatedSocket]]:
        """Connections of which both ends are open."""
        return [pair for pair in self._connections.values() if not pair[0].closed and not pair[1].closed]

    def reset(self, pair: tuple[SimulatedSocket, SimulatedSocket]) -> None:
        """Breaks a connection: both sides get an error."""
        for end in pair:
            end.fail(errno.ECONNRESET)

    def latency(self, source: Machine, target: Machine) -> int:
        """How long a packet takes."""
        draw = self.simulation.random.random()
        if source is target:
            return int(_LOCAL_US[0] + draw * _LOCAL_US[1])
        if draw < _SLOW_SHARE:
            return int(draw / _SLOW_SHARE * _SLOW_US)
        return int(_LATENCY_US[0] + draw * _LATENCY_US[1])

    # -- for sockets --------------------------------------------------------------------------------

    def thread(self) -> Thread:
        """The thread that calls; ProcessKilled if its process was."""
        self.simulation.check_alive()
        thread = self.simulation.this_thread()
        assert thread is not None
        return thread

    def register(self, made: SimulatedSocket, process: Process) -> int:
        """A descriptor for a new socket, which is closed when its process ends."""
        descriptor = next(self._descriptors)
        self._sockets[descriptor] = made
        owned = self._owned.get(process.pid)
        if owned is None:
            owned = self._owned[process.pid] = {}
            process.at_end(lambda: self._close_all(process))
        owned[descriptor] = made
        return descriptor

    def forget(self, descriptor: int, process: Process) -> None:
        """A socket is closed."""
        self._sockets.pop(descriptor, None)
        self._connections.pop(descriptor, None)
        self._owned.get(process.pid, {}).pop(descriptor, None)

    def find(self, descriptor: int) -> SimulatedSocket | None:
        """The socket of a descriptor."""
        return self._sockets.get(descriptor)

    def _close_all(self, process: Process) -> None:
        for made in list(self._owned.pop(process.pid, {}).values()):
            made.end()

    def join(self, one: SimulatedSocket, other: SimulatedSocket) -> None:
        """Makes a connection of two sockets."""
        there = Direction(self, one.process.machine, other.process.machine)
        back = Direction(self, other.process.machine, one.process.machine)
        there.writer = back.reader = one
        back.writer = there.reader = other
        one.connected(there, back)
        other.connected(back, there)
        self._connections[one.descriptor] = one, other

    def connect(self, dialing: SimulatedSocket, address: tuple[str, int]) -> None:
        """Begins to connect a socket."""
        target = self.machines.get(address[0])
        source = dialing.process.machine
        if target is None:
            raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
        delay = 2 * self.latency(source, target)
        self.simulation.after(delay, lambda: self._establish(dialing, address, target))

    def _establish(self, dialing: SimulatedSocket, address: tuple[str, int], target: Machine) -> None:
        if dialing.closed:
            return
        source = dialing.process.machine
        if self.is_cut(source, target) or self.is_cut(target, source):
            self.simulation.after(1_000_000, lambda: self._establish(dialing, address, target))  # the SYN is sent again
            return
        listener = self.listeners.get(address)
        if listener is None:
            dialing.fail(errno.ECONNREFUSED)
            return
        accepted = SimulatedSocket(self, listener.process)
        accepted.address = address
        self.join(dialing, accepted)
        listener.backlog.append(accepted)
        listener.notify()
        dialing.notify()

    def next_port(self) -> int:
        """A port without a listener."""
        return next(self._ports)

    # -- in the place of functions of `socket` and `select` -----------------------------------------

    def create_server(self, address: tuple[str, int], **_options: Any) -> SimulatedSocket:
        """A socket that listens."""
        process = self.thread().process
        listener = SimulatedSocket(self, process)
        host = address[0] if address[0] in self.machines else process.machine.name
        listener.address = (host, address[1] or self.next_port())
        listener.listening = True
        self.listeners[listener.address] = listener
        return listener

    def create_connection(
        self, address: tuple[str, int], timeout: float | None = None, **_options: Any
    ) -> SimulatedSocket:
        """A socket that is connected."""
        dialing = SimulatedSocket(self, self.thread().process)
        dialing.settimeout(timeout)
        try:
            dialing.connect(address)
        except OSError:
            dialing.close()
            raise
        return dialing

    def socket(self, *_arguments: Any, **_options: Any) -> SimulatedSocket:
        """A new socket."""
        return SimulatedSocket(self, self.thread().process)

    def socketpair(self, *_arguments: Any) -> tuple[SimulatedSocket, SimulatedSocket]:
        """Two sockets of one process that are connected."""
        process = self.thread().process
        pair = SimulatedSocket(self, process), SimulatedSocket(self, process)
        self.join(*pair)
        return pair

    def getaddrinfo(self, host: str, port: int, *_arguments: Any, **_options: Any) -> list[Any]:
        """The address as it is."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]

    def gethostname(self) -> str:
        """The name of the machine."""
        return self.thread().process.machine.name

    def epoll(self, *_arguments: Any) -> Epoll:
        """What waits for several sockets."""
        return Epoll(self)


class _SocketType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def socket_class(real: type[socket.socket]) -> type[socket.socket]:
    """A class to be put in the place of `socket.socket`: it makes simulated sockets in simulated threads."""

    class Socket(real, metaclass=_SocketType):  # type: ignore[valid-type, misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            simulation = scheduler.current
            if simulation is not None and simulation.this_thread() is not None:
                return simulation.network.socket(*args, **kwargs)
            return super().__new__(cls)

    return Socket
