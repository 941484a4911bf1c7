"""Credit-based flow control as pure state machines: no sockets, no clocks, no payloads.

One credit is one buffer. A receiver announces a credit for every buffer it could store; a sender sends a
data buffer only against a credit and sends, with each one, the number of those waiting (its backlog). The
receiver then borrows floating buffers, which the channels of a gate share, to serve that backlog. A channel
that is out of credit stops alone: the connection it shares with others is never blocked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from firesteel.runtime.model.elements import ControlEvent
from firesteel.runtime.network.errors import CreditViolationError

__all__ = ["CreditReceiver", "CreditSender", "FloatingBufferPool"]

T = TypeVar("T")


class CreditSender(Generic[T]):
    """Queue of one channel's data buffers and events, in order; data leaves only against credit."""

    __slots__ = ("_queue", "backlog", "credit")

    def __init__(self) -> None:
        self._queue: deque[T | ControlEvent] = deque()
        self.credit = 0
        self.backlog = 0
        """Data buffers in the queue; events need no buffer at the receiver and do not count."""

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, item: T | ControlEvent) -> None:
        """Queues a data buffer or an event."""
        self._queue.append(item)
        if not isinstance(item, ControlEvent):
            self.backlog += 1

    def items(self) -> tuple[T | ControlEvent, ...]:
        """What is queued, in order."""
        return tuple(self._queue)

    def overtake(self, event: ControlEvent, before: int) -> list[T | ControlEvent]:
        """Puts an event first; returns the first ``before`` items of the queue, which it overtook."""
        overtaken = [self._queue[index] for index in range(before)]
        self._queue.appendleft(event)
        return overtaken

    def remove(self, event: ControlEvent) -> int:
        """Takes an event out of the queue; returns how many items were before it."""
        index = self._queue.index(event)
        del self._queue[index]
        return index

    def add_credit(self, n: int) -> None:
        """The receiver can store n more data buffers."""
        self.credit += n

    @property
    def is_available(self) -> bool:
        """Whether poll would return something."""
        queue = self._queue
        return bool(queue) and (self.credit > 0 or isinstance(queue[0], ControlEvent))

    def poll(self) -> tuple[T | ControlEvent, int] | None:
        """The next item that may be sent, with the backlog behind it; None if there is none."""
        queue = self._queue
        if not queue:
            return None
        if isinstance(queue[0], ControlEvent):
            return queue.popleft(), self.backlog
        if self.credit <= 0:
            return None
        self.credit -= 1
        self.backlog -= 1
        return queue.popleft(), self.backlog


class FloatingBufferPool:
    """The buffers the channels of one gate borrow on demand; a recycled one goes to who waits longest."""

    __slots__ = ("_listeners", "available", "size")

    def __init__(self, size: int):
        self.size = size
        self.available = size
        self._listeners: deque[CreditReceiver] = deque()

    def request(self) -> bool:
        """Takes a buffer out of the pool, if there is one."""
        if self.available:
            self.available -= 1
            return True
        return False

    def add_listener(self, receiver: CreditReceiver) -> None:
        """The receiver gets a buffer as soon as one is recycled."""
        self._listeners.append(receiver)

    def recycle(self) -> None:
        """Takes a buffer back: the first listener that still needs one gets it."""
        listeners = self._listeners
        while listeners:
            receiver = listeners.popleft()
            if receiver.on_floating_available():
                return
        self.available += 1


def _nobody_listens() -> None:
    """What a receiver calls before it is connected."""


class CreditReceiver:
    """The buffers of one input channel, counted: free exclusive and floating ones are credit of the sender.

    ``on_credit`` is called when there is credit to announce and there was none before; the callback
    then sends the credit that ``take_credit`` returns to the sender.
    """

    __slots__ = (
        "_exclusive",
        "_free_exclusive",
        "_free_floating",
        "_in_use",
        "_pool",
        "_required",
        "_waiting",
        "on_credit",
        "unannounced",
    )

    def __init__(self, exclusive: int, pool: FloatingBufferPool):
        if exclusive < 1:
            raise ValueError("a channel needs at least one exclusive buffer, or it could stall for ever")
        self._exclusive = exclusive
        self._free_exclusive = exclusive
        self._free_floating = 0
        self._pool = pool
        self._in_use: deque[bool] = deque()  # of each stored buffer, in order: is it a floating one?
        self._required = 0
        self._waiting = False
        self.unannounced = exclusive
        self.on_credit: Callable[[], None] = _nobody_listens

    @property
    def in_use(self) -> int:
        """Buffers that hold something."""
        return len(self._in_use)

    @property
    def announced(self) -> int:
        """Credit the sender has, or has used for buffers that are still on their way."""
        return self._free_exclusive + self._free_floating - self.unannounced

    def take_credit(self) -> int:
        """The credit to announce now; from here on it is the sender's."""
        credit = self.unannounced
        self.unannounced = 0
        return credit

    def on_data(self, backlog: int) -> None:
        """A data buffer arrived; floating buffers are used up first, so that they return to the pool."""
        if self._free_exclusive + self._free_floating <= self.unannounced:
            raise CreditViolationError("a buffer arrived for which no credit had been announced")
        if self._free_floating:
            self._free_floating -= 1
            self._in_use.append(True)
        else:
            self._free_exclusive -= 1
            self._in_use.append(False)
        self.on_backlog(backlog)

    def on_backlog(self, backlog: int) -> None:
        """The sender has that many buffers waiting: borrows floating buffers to serve them."""
        required = self._required = backlog + self._exclusive
        missing = required - self._free_exclusive - self._free_floating
        if missing <= 0 or self._waiting:
            return
        gained = 0
        pool = self._pool
        while gained < missing and pool.request():
            gained += 1
        if gained < missing:
            self._waiting = True
            pool.add_listener(self)
        if gained:
            self._free_floating += gained
            self._gained_credit(gained)

    def on_consumed(self) -> None:
        """The oldest stored buffer has been read: recycles it."""
        if self._in_use.popleft():
            self._pool.recycle()
            return
        self._free_exclusive += 1
        if self._free_floating and self._free_exclusive + self._free_floating > self._required:
            # The sender's credit stays the same: an exclusive buffer takes the floating one's place.
            self._free_floating -= 1
            self._pool.recycle()
        else:
            self._gained_credit(1)

    def on_floating_available(self) -> bool:
        """The pool offers a buffer this receiver has waited for; False if it is no longer needed."""
        missing = self._required - self._free_exclusive - self._free_floating
        if missing <= 0:
            self._waiting = False
            return False
        self._free_floating += 1
        if missing > 1:
            self._pool.add_listener(self)
        else:
            self._waiting = False
        self._gained_credit(1)
        return True

    def _gained_credit(self, n: int) -> None:
        # Last in every path that calls it: announcing may bring in the next buffer before it returns.
        before = self.unannounced
        self.unannounced = before + n
        if not before:
            self.on_credit()
