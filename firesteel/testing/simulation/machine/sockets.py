"""Sockets and selectors of simulated processes."""

from __future__ import annotations

import errno
import os
import select
import socket
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from typing_extensions import Buffer, Self

from firesteel.testing.simulation.machine.scheduler import Process, Thread, microseconds

if TYPE_CHECKING:
    from firesteel.testing.simulation.machine.network import Direction, Network

__all__ = ["WINDOW", "Epoll", "SimulatedSocket"]

WINDOW = 1 << 18
"""Bytes that one side may have sent and the other not read."""
_IN, _OUT, _ERROR = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR
_STEP_US = (20, 300)
"""What a turn of a loop that polls costs."""


class SimulatedSocket(socket.socket):
    """A stream socket. It is one of `socket.socket` by its type only."""

    def __init__(self, network: Network, process: Process):
        # not that of socket.socket, which would make a real one
        self._network = network
        self.process = process
        self.descriptor = network.register(self, process)
        self.address: tuple[str, int] = (process.machine.name, 0)
        self.listening = False
        self.backlog: deque[SimulatedSocket] = deque()
        self.closed = False
        self.outgoing: Direction | None = None
        self._incoming: Direction | None = None
        self._timeout: float | None = None
        self._error = 0
        self._connecting = False
        self._shut = False
        self._waiting: list[tuple[Thread, int]] = []
        self.epolls: list[Epoll] = []

    # -- what happens to it -------------------------------------------------------------------------

    def connected(self, outgoing: Direction, incoming: Direction) -> None:
        """It has a peer."""
        self.outgoing, self._incoming = outgoing, incoming
        self._connecting = False

    def fail(self, number: int) -> None:
        """The connection is broken."""
        self._error = number
        self._connecting = False
        self.notify()

    def notify(self) -> None:
        """Its state has changed: waiting threads check it again."""
        simulation = self._network.simulation
        waiting, self._waiting = self._waiting, []
        for thread, token in waiting:
            simulation.wake(thread, token)
        for epoll in self.epolls:
            epoll.notify()

    def end(self) -> None:
        """Closes it: the other side reads the end, after all that was sent."""
        if self.closed:
            return
        self.closed = True
        if self.listening:
            self._network.listeners.pop(self.address, None)
            for accepted in self.backlog:
                accepted.end()
        if self.outgoing is not None and not self._shut and not self._error:
            self._shut = True
            self.outgoing.send(None)
        self._network.forget(self.descriptor, self.process)
        self.notify()

    # -- readiness ----------------------------------------------------------------------------------

    def events(self) -> int:
        """Its epoll events."""
        if self.listening:
            return _IN if self.backlog else 0
        if self._error:
            return _IN | _OUT | _ERROR
        incoming, outgoing = self._incoming, self.outgoing
        found = _IN if incoming is not None and (incoming.arrived or incoming.ended) else 0
        if outgoing is not None and outgoing.unread + outgoing.in_flight < WINDOW:
            found |= _OUT
        return found

    def _wait_for(self, event: int, what: str) -> None:
        """Blocks up to the socket's timeout, until it is readable or writable."""
        simulation = self._network.simulation
        simulation.check_alive()
        deadline = None if self._timeout is None else simulation.now + microseconds(self._timeout)
        while not self.closed and not self.events() & event:
            if self._timeout == 0:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            left = None if deadline is None else deadline - simulation.now
            if left is not None and left <= 0:
                raise TimeoutError(f"{what} timed out")
            thread = self._network.thread()
            self._waiting.append((thread, thread.token))
            simulation.wait(left)
        if self.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _check(self) -> None:
        self._network.simulation.check_alive()
        if self.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self._error:
            raise OSError(self._error, os.strerror(self._error))

    # -- the interface of socket.socket -------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<socket {self.descriptor} of {self.process}>"

    def fileno(self) -> int:
        """Its descriptor."""
        return -1 if self.closed else self.descriptor

    def settimeout(self, value: float | None, /) -> None:
        """How long its operations may block."""
        self._timeout = value

    def setblocking(self, flag: bool, /) -> None:
        """Whether its operations may block."""
        self._timeout = None if flag else 0

    def setsockopt(self, *_arguments: Any) -> None:
        """Changes nothing."""

    def getsockopt(self, _level: int, option: int, _size: int = 0, /) -> Any:
        """The error of a connection that failed."""
        return self._error if option == socket.SO_ERROR else 0

    def getsockname(self) -> Any:
        """Where it listens, or is connected from."""
        return self.address

    def getpeername(self) -> Any:
        """Who is at the other end."""
        if self.outgoing is None or self.outgoing.reader is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self.outgoing.reader.address

    def connect(self, address: Any, /) -> None:
        """Connects to a socket that listens."""
        self._check()
        self._network.connect(self, (address[0], address[1]))
        self._connecting = True
        if self._timeout == 0:
            raise BlockingIOError(errno.EINPROGRESS, os.strerror(errno.EINPROGRESS))
        self._wait_for(_OUT, "connecting")
        self._check()

    def accept(self) -> tuple[Any, Any]:
        """Takes a connection."""
        self._wait_for(_IN, "accepting")
        accepted = self.backlog.popleft()
        return accepted, accepted.getpeername()

    def send(self, data: Buffer, _flags: int = 0, /) -> int:
        """Sends as much as there is room for."""
        return self._send(bytes(data))

    def sendall(self, data: Buffer, _flags: int = 0, /) -> None:
        """Sends all."""
        rest = bytes(data)
        while rest:
            rest = rest[self._send(rest) :]

    def sendmsg(self, buffers: Iterable[Buffer], *_arguments: Any) -> int:
        """Sends as much as there is room for."""
        return self._send(b"".join(bytes(part) for part in buffers))

    def _send(self, data: bytes) -> int:
        self._check()
        if self._connecting or self.outgoing is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        self._network.simulation.step()
        self._wait_for(_OUT, "sending")
        self._check()
        reader = self.outgoing.reader
        if self._shut or (reader is not None and reader.closed and self._incoming is not None and self._incoming.ended):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        part = data[: self.outgoing.room]
        self.outgoing.send(part)
        return len(part)

    def recv(self, size: int, _flags: int = 0, /) -> bytes:
        """Bytes that have come; none at the end."""
        if self._connecting:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        self._wait_for(_IN, "receiving")
        assert self._incoming is not None or self._error
        if self._incoming is not None and self._incoming.arrived:
            return self._incoming.read(size)
        self._check()
        return b""

    def recv_into(self, buffer: Buffer, _size: int = 0, _flags: int = 0, /) -> int:
        """Bytes that have come, into a buffer."""
        view = memoryview(buffer)
        data = self.recv(len(view))
        view[: len(data)] = data
        return len(data)

    def recvmsg_into(self, buffers: Iterable[Buffer], *_arguments: Any) -> Any:
        """Bytes that have come, into several buffers."""
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        data = self.recv(sum(map(len, views)))
        while self._incoming is not None and self._incoming.arrived and len(data) < sum(map(len, views)):
            data += self._incoming.read(sum(map(len, views)) - len(data))
        at = 0
        for view in views:
            part = data[at : at + len(view)]
            view[: len(part)] = part
            at += len(part)
        return len(data), [], 0, None

    def makefile(self, *_arguments: Any, **_options: Any) -> Any:
        """A stream of what comes."""
        return _Stream(self)

    def shutdown(self, _how: int, /) -> None:
        """Ends what is sent; a listening socket, or one that is shut both ways, wakes who waits for it."""
        self._check()
        if self.listening:
            self.end()
        elif self.outgoing is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        else:
            if not self._shut:
                self._shut = True
                self.outgoing.send(None)
            if _how == socket.SHUT_RDWR and self._incoming is not None:
                self._incoming.ended = True
                self.notify()

    def close(self) -> None:
        """Closes it."""
        self._network.simulation.check_alive()
        self.end()


class _Stream:
    """Reads whole pieces."""

    def __init__(self, source: SimulatedSocket):
        self._source = source

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """The socket stays open."""

    def read(self, size: int) -> bytes:
        """As many bytes, or fewer at the end."""
        data = b""
        while len(data) < size:
            part = self._source.recv(size - len(data))
            if not part:
                break
            data += part
        return data


class Epoll:
    """In the place of `select.epoll`."""

    def __init__(self, network: Network):
        self._network = network
        self._masks: dict[int, int] = {}
        self._sockets: dict[int, SimulatedSocket] = {}
        self._waiting: tuple[Thread, int] | None = None

    def register(self, fd: int, mask: int) -> None:
        """Waits for a socket as well."""
        found = self._network.find(fd)
        if found is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._masks[fd] = mask
        self._sockets[fd] = found
        found.epolls.append(self)

    def modify(self, fd: int, mask: int) -> None:
        """Waits for something else."""
        self._masks[fd] = mask

    def unregister(self, fd: int) -> None:
        """No longer waits for a socket."""
        self._masks.pop(fd, None)
        found = self._sockets.pop(fd, None)
        if found is not None and self in found.epolls:
            found.epolls.remove(self)

    def notify(self) -> None:
        """Something about a socket has changed."""
        if self._waiting is not None:
            self._network.simulation.wake(*self._waiting)

    def poll(self, timeout: float | None = None, _most: int = -1) -> list[tuple[int, int]]:
        """The sockets that are ready, and for what; waits if there are none."""
        simulation = self._network.simulation
        thread = self._network.thread()
        simulation.check_alive()
        if timeout == 0:
            # what the caller has done since the last time took some time
            simulation.sleep(simulation.random.randint(*_STEP_US))
            return self._ready()
        ready = self._ready()
        if not ready:
            self._waiting = thread, thread.token
            simulation.wait(None if timeout is None or timeout < 0 else microseconds(timeout))
            self._waiting = None
            ready = self._ready()
        return ready

    def _ready(self) -> list[tuple[int, int]]:
        found = []
        for fd, mask in self._masks.items():
            events = self._sockets[fd].events() & (mask | _ERROR)
            if events:
                found.append((fd, events))
        return found

    def close(self) -> None:
        """Waits for nothing any more."""
        for fd in list(self._sockets):
            self.unregister(fd)
