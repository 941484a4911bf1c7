"""Barrier alignment: aligned, unaligned, and aligned with a timeout.

*Aligned*: a channel whose barrier has been read is blocked until the barriers of all channels have been read; then
the task's snapshot is taken. With at-least-once nothing is blocked, and barriers of later checkpoints may come in
between.

*Unaligned*: the first barrier that arrives, read or not, starts the snapshot. What is queued before a channel's
barrier, and what still arrives before it, is in flight: it becomes part of the checkpoint.

After rescaling, what was in flight is read before anything else, in an order that channels could not keep: no barrier
overtakes it.

*Aligned with a timeout*: an aligned checkpoint that has not come through when its time is over continues as an
unaligned one. What had been read by then stays read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from firesteel.runtime.model.elements import CheckpointBarrier, ControlEvent, EndOfPartition
from firesteel.runtime.network.gate import InFlightItem, InputGate

__all__ = ["BarrierHandler", "BarrierListener", "InFlightInput", "alignment_delay"]


def alignment_delay(barrier: CheckpointBarrier, now: int) -> int:
    """After which time an aligned checkpoint becomes an unaligned one; ``now`` is what the wall clock shows.

    The timeout counts from when the checkpoint was triggered, perhaps on another machine. Where the clocks differ, or
    one was set in between, the delay is never longer than the timeout.
    """
    timeout = barrier.options.alignment_timeout
    assert timeout is not None
    return min(max(barrier.timestamp + timeout - now, 0), timeout)


class InFlightInput:
    """What an unaligned barrier overtook at a task's input: complete once every channel's barrier has arrived."""

    def __init__(self) -> None:
        self.channels: dict[int, list[InFlightItem]] = {}
        self.is_complete = False
        self.on_complete: Callable[[], None] = lambda: None

    def complete(self) -> None:
        """The last barrier has arrived."""
        self.is_complete = True
        self.on_complete()


class BarrierListener(Protocol):
    """The task, as its barrier handler sees it."""

    def take_snapshot(self, barrier: CheckpointBarrier, in_flight: InFlightInput | None, alignment_ms: int) -> None:
        """The task's part of the checkpoint begins; ``in_flight`` comes with an unaligned one."""
        ...

    def decline(self, checkpoint_id: int, reason: str) -> None:
        """The task cannot take part."""
        ...

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        ...

    def is_urgent(self) -> None:
        """``process_urgent`` is to be called, as soon as no batch is under way."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        ...

    def call_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back between batches, after a delay in milliseconds, until the task is finished."""
        ...


class _Alignment:
    """One checkpoint on its way through the task's input."""

    def __init__(self, barrier: CheckpointBarrier, now: int):
        self.barrier = barrier
        self.started = now
        self.read: set[int] = set()
        """Channels whose barrier has been read; or that ended."""
        self.in_flight: InFlightInput | None = None
        """Once it is unaligned."""
        self.missing: set[int] = set()
        """Once it is unaligned: channels whose barrier has not arrived."""


class BarrierHandler:
    """The barriers of one task's gate. ``arrived`` is called when one comes in, ``received`` when it is read."""

    def __init__(self, gate: InputGate, listener: BarrierListener, *, unaligned: bool = True):
        """``unaligned``: whether barriers may overtake; if not, unaligned ones are aligned here and go on unaligned."""
        self._gate = gate
        self._unaligned = unaligned
        self._listener = listener
        self._open = set(range(len(gate.channels)))
        self._alignment: _Alignment | None = None
        self._tracked: dict[int, _Alignment] = {}
        """Checkpoints that block no channel, of which several may be on their way, in order."""
        self._last = 0
        """The highest checkpoint that was taken or declined: what comes of it and older ones is void."""
        self._aborted: set[int] = set()
        """Later ones that are void."""
        self._urgent: CheckpointBarrier | None = None
        """The newest one that is to overtake, as soon as it may."""
        gate.on_mark = self.arrived
        gate.on_restored_read = self._restored_read

    @property
    def all_ended(self) -> bool:
        """Whether the ends of all channels have been read."""
        return not self._open

    # -- notifications of the gate and the task ------------------------------------------------------------

    def arrived(self, channel: int, event: ControlEvent) -> None:
        """A barrier, or the end of a channel, stands in a channel's queue. Only records it: a batch may be running."""
        alignment = self._alignment
        if isinstance(event, CheckpointBarrier):
            if alignment is not None and alignment.missing and event.checkpoint_id >= alignment.barrier.checkpoint_id:
                self._no_longer_missing(alignment, channel)
            if self._is_void(event) or not self._unaligned:
                return
            if event.options.unaligned:
                if self._urgent is None:
                    self._listener.is_urgent()
                if self._urgent is None or self._urgent.checkpoint_id < event.checkpoint_id:
                    self._urgent = event
            elif event.options.alignment_timeout is not None:
                delay = alignment_delay(event, self._listener.processing_time())
                self._listener.call_after(delay, lambda: self._on_timeout(event))
        elif isinstance(event, EndOfPartition) and alignment is not None and alignment.missing:
            self._no_longer_missing(alignment, channel)

    def process_urgent(self) -> None:
        """Starts the unaligned checkpoint whose barrier has arrived; called between batches."""
        barrier, self._urgent = self._urgent, None
        if barrier is not None and not self._is_void(barrier):
            self._go_unaligned(barrier)

    def _restored_read(self) -> None:
        if self._urgent is not None:
            self._listener.is_urgent()

    def received(self, channel: int, barrier: CheckpointBarrier) -> None:
        """A barrier was read from its channel."""
        if self._is_void(barrier):
            return
        if barrier.options.unaligned and self._unaligned:
            # it was read before process_urgent was called, so it is in no queue any more
            self._go_unaligned(barrier, channel)
            return
        if not barrier.options.exactly_once:
            self._track(barrier).read.add(channel)
            self._check_tracked()
            return
        alignment = self._begin(barrier)
        if alignment is None:
            return
        alignment.read.add(channel)
        self._gate.block(channel)
        self._check_aligned(alignment)

    def ended(self, channel: int) -> None:
        """The end of a channel was read: no barrier will come from it."""
        self._open.discard(channel)
        if self._alignment is not None and self._alignment.in_flight is None:
            self._check_aligned(self._alignment)
        self._check_tracked()

    def trigger(self, barrier: CheckpointBarrier) -> None:
        """The coordinator itself triggers the task: all its producers are gone.

        What they left may not have been read yet. It is waited for or, unaligned, is in flight.
        """
        if self._is_void(barrier):
            return
        if barrier.options.unaligned and self._unaligned:
            self._go_unaligned(barrier)
            return
        if barrier.options.alignment_timeout is not None and self._unaligned:
            delay = alignment_delay(barrier, self._listener.processing_time())
            self._listener.call_after(delay, lambda: self._on_timeout(barrier))
        self._track(barrier)
        self._check_tracked()

    def aborted(self, checkpoint_id: int) -> None:
        """The coordinator gave the checkpoint up."""
        alignment = self._alignment
        if alignment is not None and alignment.barrier.checkpoint_id == checkpoint_id:
            self._release(alignment)
            self._alignment = None
        self._tracked.pop(checkpoint_id, None)
        if self._urgent is not None and self._urgent.checkpoint_id == checkpoint_id:
            self._urgent = None
        if checkpoint_id > self._last:
            self._aborted.add(checkpoint_id)

    # -- progress of a checkpoint -------------------------------------------------------------------

    def _is_void(self, barrier: CheckpointBarrier) -> bool:
        return barrier.checkpoint_id <= self._last or barrier.checkpoint_id in self._aborted

    def _over(self, checkpoint_id: int) -> None:
        """A checkpoint was taken or declined."""
        self._last = max(self._last, checkpoint_id)
        self._aborted = {each for each in self._aborted if each > self._last}
        for older in [each for each in self._tracked if each <= self._last]:
            del self._tracked[older]

    def _track(self, barrier: CheckpointBarrier) -> _Alignment:
        """The progress of a checkpoint for which no channel is blocked."""
        return self._tracked.setdefault(barrier.checkpoint_id, _Alignment(barrier, self._listener.monotonic_ms()))

    def _check_tracked(self) -> None:
        for checkpoint_id, alignment in sorted(self._tracked.items()):
            if self._open <= alignment.read:
                self._over(checkpoint_id)
                waited = self._listener.monotonic_ms() - alignment.started
                self._listener.take_snapshot(alignment.barrier, None, waited)

    def _begin(self, barrier: CheckpointBarrier) -> _Alignment | None:
        """The alignment a barrier belongs to; a newer barrier ends an older alignment."""
        alignment = self._alignment
        if alignment is not None and alignment.in_flight is None:
            current = alignment.barrier.checkpoint_id
            if barrier.checkpoint_id == current:
                return alignment
            if barrier.checkpoint_id < current:
                return None
            self._release(alignment)
            self._over(current)
            self._listener.decline(current, f"the barrier of checkpoint {barrier.checkpoint_id} came first")
        elif alignment is not None:
            # its snapshot was taken long ago, only buffers in flight are still awaited: they will never be complete
            self._release(alignment)
            self._listener.decline(
                alignment.barrier.checkpoint_id, f"the barrier of checkpoint {barrier.checkpoint_id} came first"
            )
        self._alignment = _Alignment(barrier, self._listener.monotonic_ms())
        return self._alignment

    def _check_aligned(self, alignment: _Alignment) -> None:
        if self._open <= alignment.read:
            self._complete(alignment.barrier)

    def _complete(self, barrier: CheckpointBarrier) -> None:
        alignment = self._alignment
        assert alignment is not None
        self._alignment = None
        self._over(barrier.checkpoint_id)
        # the snapshot first: a channel that is read again must not change the state
        self._listener.take_snapshot(barrier, None, self._listener.monotonic_ms() - alignment.started)
        self._release(alignment)

    def _on_timeout(self, barrier: CheckpointBarrier) -> None:
        if not self._is_void(barrier):
            self._go_unaligned(replace(barrier, options=replace(barrier.options, unaligned=True)))

    def _go_unaligned(self, barrier: CheckpointBarrier, read: int | None = None) -> None:
        if self._gate.restored:
            if self._urgent is None or self._urgent.checkpoint_id < barrier.checkpoint_id:
                self._urgent = barrier
            return
        alignment = self._begin(barrier)
        if alignment is None:
            return
        if read is not None:
            alignment.read.add(read)
        alignment.barrier = barrier
        in_flight = alignment.in_flight = InFlightInput()
        for channel in self._gate.channels:
            if channel.index in alignment.read or channel.index not in self._open:
                continue
            items, has_barrier = channel.in_flight(barrier.checkpoint_id)
            in_flight.channels[channel.index] = items
            if not has_barrier:
                channel.recorded = items
                alignment.missing.add(channel.index)
        self._over(barrier.checkpoint_id)
        if not alignment.missing:
            self._alignment = None
            in_flight.is_complete = True
        for index in alignment.read:
            self._gate.unblock(index)
        self._listener.take_snapshot(barrier, in_flight, self._listener.monotonic_ms() - alignment.started)

    def _no_longer_missing(self, alignment: _Alignment, channel: int) -> None:
        if channel not in alignment.missing:
            return
        alignment.missing.discard(channel)
        self._gate.channels[channel].recorded = None
        if not alignment.missing:
            if self._alignment is alignment:
                self._alignment = None
            assert alignment.in_flight is not None
            alignment.in_flight.complete()

    def _release(self, alignment: _Alignment) -> None:
        for index in alignment.missing:
            self._gate.channels[index].recorded = None
        alignment.missing.clear()
        for index in alignment.read:
            self._gate.unblock(index)
