"""Event loop for non-blocking sockets, a thin layer over epoll."""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
from collections.abc import Callable
from typing import Protocol

__all__ = ["IOLoop"]

_READ = 1
_WRITE = 2


class _Poller(Protocol):
    def register(self, fd: int, mask: int) -> None: ...
    def modify(self, fd: int, mask: int) -> None: ...
    def unregister(self, fd: int) -> None: ...
    def poll(self, timeout_s: float) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class _EpollPoller:
    """Linux: select.epoll without the bookkeeping of the selectors module."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.unregister = self._epoll.unregister
        self.close = self._epoll.close

    def register(self, fd: int, mask: int) -> None:
        self._epoll.register(fd, self._events(mask))

    def modify(self, fd: int, mask: int) -> None:
        self._epoll.modify(fd, self._events(mask))

    def poll(self, timeout_s: float) -> list[tuple[int, int]]:
        return [
            # A hang-up or an error shows in the next operation.
            (fd, (_READ if events & ~select.EPOLLOUT else 0) | (_WRITE if events & ~select.EPOLLIN else 0))
            for fd, events in self._epoll.poll(timeout_s)
        ]

    @staticmethod
    def _events(mask: int) -> int:
        return (select.EPOLLIN if mask & _READ else 0) | (select.EPOLLOUT if mask & _WRITE else 0)


class _SelectorPoller:
    """Anywhere else."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.close = self._selector.close

    def register(self, fd: int, mask: int) -> None:
        self._selector.register(fd, self._events(mask))

    def modify(self, fd: int, mask: int) -> None:
        self._selector.modify(fd, self._events(mask))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout_s: float) -> list[tuple[int, int]]:
        return [
            (
                key.fd,
                (_READ if events & selectors.EVENT_READ else 0) | (_WRITE if events & selectors.EVENT_WRITE else 0),
            )
            for key, events in self._selector.select(timeout_s)
        ]

    @staticmethod
    def _events(mask: int) -> int:
        return (selectors.EVENT_READ if mask & _READ else 0) | (selectors.EVENT_WRITE if mask & _WRITE else 0)


class IOLoop:
    """Callbacks by file descriptor. Used by one thread, but for ``wakeup``."""

    def __init__(self, *, portable: bool = False) -> None:
        self._poller: _Poller = _SelectorPoller() if portable or not hasattr(select, "epoll") else _EpollPoller()
        self._readers: dict[int, Callable[[], object]] = {}
        self._writers: dict[int, Callable[[], object]] = {}
        self._wakeup_in, self._wakeup_out = socket.socketpair()
        self._wakeup_in.setblocking(False)
        self._wakeup_out.setblocking(False)
        self.add_reader(self._wakeup_in.fileno(), self._on_wakeup)

    def add_reader(self, fd: int, callback: Callable[[], object]) -> None:
        """Calls back whenever the descriptor is readable."""
        self._set(self._readers, fd, callback)

    def add_writer(self, fd: int, callback: Callable[[], object]) -> None:
        """Calls back whenever the descriptor is writable."""
        self._set(self._writers, fd, callback)

    def remove_reader(self, fd: int) -> None:
        """No longer calls back when it is readable."""
        self._unset(self._readers, fd)

    def remove_writer(self, fd: int) -> None:
        """No longer calls back when it is writable."""
        self._unset(self._writers, fd)

    def poll(self, timeout_s: float) -> bool:
        """Waits for the first events, at most so long, and calls back; whether there were any."""
        ready = self._poller.poll(timeout_s)
        for fd, mask in ready:
            # Looked up at the last moment: a callback may have removed another.
            if mask & _READ and (callback := self._readers.get(fd)) is not None:
                callback()
            if mask & _WRITE and (callback := self._writers.get(fd)) is not None:
                callback()
        return bool(ready)

    def wakeup(self) -> None:
        """Ends a poll that is waiting, or the next one; safe from any thread, at any time."""
        with contextlib.suppress(OSError):  # full: a wake-up is on its way; closed: nothing to wake
            self._wakeup_out.send(b"\0")

    def close(self) -> None:
        """Closes what the loop itself has opened."""
        self._readers.clear()
        self._writers.clear()
        self._poller.close()
        self._wakeup_in.close()
        self._wakeup_out.close()

    def _on_wakeup(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wakeup_in.recv(4096)

    def _mask(self, fd: int) -> int:
        return (_READ if fd in self._readers else 0) | (_WRITE if fd in self._writers else 0)

    def _set(self, callbacks: dict[int, Callable[[], object]], fd: int, callback: Callable[[], object]) -> None:
        before = self._mask(fd)
        callbacks[fd] = callback
        after = self._mask(fd)
        if not before:
            self._poller.register(fd, after)
        elif after != before:
            self._poller.modify(fd, after)

    def _unset(self, callbacks: dict[int, Callable[[], object]], fd: int) -> None:
        if callbacks.pop(fd, None) is None:
            return
        after = self._mask(fd)
        if after:
            self._poller.modify(fd, after)
        else:
            self._poller.unregister(fd)
