"""Source harness: the enumerator and all readers of a source, polled by hand, without a job."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle

from firesteel.filesystem.stores import current_stores
from firesteel.runtime.model.metrics import MetricRegistry
from firesteel.spi.execution_traits import PIPELINED
from firesteel.spi.source import InputStatus, Source, SourceReader, SplitEnumerator
from firesteel.testing.conformance.errors import ConformanceError
from firesteel.testing.conformance.guarded_thread import GuardedThread

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SourceHarness", "SourceSnapshot"]

_PAUSE_S = 0.001


@dataclass(frozen=True)
class SourceSnapshot:
    """What a checkpoint keeps of a source: the enumerator's state and the readers' splits, pickled."""

    checkpoint_id: int
    enumerator: bytes
    readers: tuple[bytes, ...]

    def dealt_to(self, parallelism: int) -> list[list[Any]]:
        """The splits for so many readers: each its own if there are as many as before, else redistributed."""
        states = [pickle.loads(state) for state in self.readers]
        if len(states) == parallelism:
            return states
        splits = [split for state in states for split in state]
        return [splits[subtask::parallelism] for subtask in range(parallelism)]


class SourceHarness:
    """Plays the JobMaster and the tasks of one source. Everything between them is pickled, as in a job.

    Readers are called in a thread of their own, and must return within ``call_timeout_s``. What a reader emits that
    does not fit (records of a split it does not have, or has released) raises a ConformanceError at once.
    """

    def __init__(
        self,
        source: Source[Any],
        parallelism: int = 1,
        *,
        restored: SourceSnapshot | None = None,
        attempt: int = 0,
        call_timeout_s: float = 10.0,
    ) -> None:
        self.parallelism = parallelism
        self.attempt = attempt
        self.source: Source[Any] = pickle.loads(cloudpickle.dumps(source, 5))
        self._thread = GuardedThread(call_timeout_s)
        self._calls = _AsyncCalls()
        self.at_snapshot: dict[str, int] = {}
        """How many records of each split had been emitted at the last snapshot."""
        self._told: list[tuple[int, Callable[[], None]]] = []
        self._said: list[Callable[[], None]] = []
        self._started: set[int] = set()
        self._no_more: set[int] = set()
        self._closed = False
        self.outputs = [_Output(self, subtask) for subtask in range(parallelism)]
        self.ended = [False] * parallelism
        self.readers: list[SourceReader[Any]] = []
        try:
            self._open(restored)
        except BaseException:
            self.close()
            raise

    def _open(self, restored: SourceSnapshot | None) -> None:
        self.enumerator: SplitEnumerator[Any] | None = None
        if restored is None:
            self.enumerator = self.source.create_enumerator(self)
        else:
            state = pickle.loads(restored.enumerator)
            self.enumerator = self.source.restore_enumerator(self, state)
        self.enumerator.start()
        dealt = [[]] * self.parallelism if restored is None else restored.dealt_to(self.parallelism)
        for subtask in range(self.parallelism):
            # a copy of the source for each task, as each is in a process of its own
            source = pickle.loads(cloudpickle.dumps(self.source, 5))
            context = _ReaderContext(self, subtask)
            reader = self._thread.call("create_reader()", source.create_reader, context)
            self.readers.append(reader)
            if dealt[subtask]:
                self._add_splits(subtask, dealt[subtask])
            self._thread.call("SourceReader.start()", reader.start)
        for subtask in range(self.parallelism):
            self._started.add(subtask)
            self.enumerator.add_reader(subtask)
        self.deliver()

    # -- what the enumerator calls --------------------------------------------------------------------

    def current_parallelism(self) -> int:
        """How many readers there are."""
        return self.parallelism

    def registered_readers(self) -> list[int]:
        """Readers that have started."""
        return sorted(self._started)

    def assign_split(self, split: Any, subtask: int) -> None:
        """Gives a split to a reader."""
        if subtask in self._no_more:
            raise ConformanceError(
                f"The enumerator assigned split {split.split_id!r} to reader {subtask} after it had told it that there "
                "are no more: the reader may have ended, and the split would never be read."
            )
        copy = _copied(split, "a split")
        self._told.append((subtask, lambda: self._add_splits(subtask, [copy])))

    def signal_no_more_splits(self, subtask: int) -> None:
        """Signals a reader that it gets no more splits."""
        if subtask not in self._no_more:
            self._no_more.add(subtask)
            self._told.append((subtask, self.readers_call(subtask, "notify_no_more_splits")))

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        """Sends an event to a reader."""
        self._told.append((subtask, self.readers_call(subtask, "handle_source_event", _copied(event, "an event"))))

    def call_async(
        self,
        call: Callable[[], Any],
        handler: Callable[[Any, Exception | None], None],
        *,
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        """Has a call made in another thread."""
        self._calls.add(call, handler, initial_delay_ms, period_ms)

    # -- what a test calls ----------------------------------------------------------------------------

    def poll(self, subtask: int = 0, max_records: int = 10) -> InputStatus:
        """Polls one reader, after all pending messages have arrived; its own messages are then pending."""
        self.deliver()
        status = self._thread.call("poll_next()", self.readers[subtask].poll_next, self.outputs[subtask], max_records)
        if not isinstance(status, InputStatus):
            raise ConformanceError(f"poll_next() must return an InputStatus, not {status!r}.")
        self.ended[subtask] = status is InputStatus.END_OF_INPUT
        return status

    def poll_all(self, max_records: int = 10) -> bool:
        """Polls each reader that has not ended once; whether that brought records or the end of one."""
        before = self.count, sum(self.ended)
        for subtask in range(self.parallelism):
            if not self.ended[subtask]:
                self.poll(subtask, max_records)
        return (self.count, sum(self.ended)) != before

    def run(self, *, until: Callable[[], bool] | None = None, max_records: int = 100, timeout_s: float = 30.0) -> None:
        """Polls until all readers have ended, or until something is so."""
        deadline = time.monotonic() + timeout_s
        spins = 0
        while not (all(self.ended) if until is None else until()):
            if all(self.ended):
                raise ConformanceError(f"The source has ended, with {self.count} records, before it has read all.")
            if time.monotonic() > deadline:
                raise ConformanceError(
                    f"After {timeout_s:g} s the source has emitted {self.count} records and "
                    f"{sum(self.ended)} of {self.parallelism} readers have ended: it does not go on. "
                    f"Readers have the splits {[sorted(output.splits) for output in self.outputs]}."
                )
            if self.poll_all(max_records):
                spins = 0
                continue
            spins += 1
            self._rest(spins)

    def run_to(self, count: int, max_records: int = 100, timeout_s: float = 30.0) -> None:
        """Polls until so many records were emitted, or all readers have ended."""
        self.run(until=lambda: self.count >= count or all(self.ended), max_records=max_records, timeout_s=timeout_s)

    def may_end(self, subtask: int) -> bool:
        """Whether a reader got the signal that there are no more splits."""
        return subtask in self._no_more

    def _rest(self, spins: int) -> None:
        waits = [reader.available_at() for reader, ended in zip(self.readers, self.ended, strict=True) if not ended]
        known = [moment for moment in waits if moment is not None]
        pause = min(known, default=0.0) - time.monotonic()
        time.sleep(min(max(pause, _PAUSE_S if spins > 3 else 0.0), 0.05))

    def deliver(self) -> None:
        """Delivers all messages between enumerator and readers, in order."""
        while True:
            self._calls.handle()
            if self._said:
                self._said.pop(0)()
            elif not self._tell():
                return

    def _tell(self) -> bool:
        """Delivers the next message of the enumerator."""
        if not self._told or self._told[0][0] not in self._started:
            return False
        subtask, tell = self._told.pop(0)
        if not self.ended[subtask]:
            tell()
        return True

    def snapshot(self, checkpoint_id: int = 1) -> SourceSnapshot:
        """A checkpoint: first the enumerator, then the readers, each with all messages sent before.

        Pending messages of readers to the enumerator are in no checkpoint.
        """
        assert self.enumerator is not None
        enumerator = _pickled(self.enumerator.snapshot_state(checkpoint_id), "the enumerator's state")
        while self._tell():
            pass
        readers = []
        for reader, ended in zip(self.readers, self.ended, strict=True):
            splits = [] if ended else self._thread.call("snapshot_state()", reader.snapshot_state, checkpoint_id)
            readers.append(_pickled(list(splits), "a reader's splits"))
        self.at_snapshot = {split_id: len(records) for split_id, records in self.by_split().items()}
        return SourceSnapshot(checkpoint_id, enumerator, tuple(readers))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete."""
        assert self.enumerator is not None
        self.enumerator.notify_checkpoint_complete(checkpoint_id)
        for reader in self.readers:
            self._thread.call("notify_checkpoint_complete()", reader.notify_checkpoint_complete, checkpoint_id)
        self.deliver()

    @property
    def records(self) -> list[Any]:
        """All that was emitted, reader by reader."""
        return [record for output in self.outputs for _, record in output.records]

    @property
    def count(self) -> int:
        """How many records were emitted."""
        return sum(len(output.records) for output in self.outputs)

    def by_split(self) -> dict[str, list[Any]]:
        """What was emitted of each split, in order."""
        found: dict[str, list[Any]] = {}
        for output in self.outputs:
            for split_id, record in output.records:
                found.setdefault(split_id, []).append(record)
        return found

    def close(self) -> None:
        """Closes all readers and the enumerator, once, as a job does at its end and after a failure."""
        if self._closed:
            return
        self._closed = True
        failure: BaseException | None = None
        self._calls.close()
        closes: list[tuple[str, Callable[[], None]]] = [("SourceReader.close()", r.close) for r in self.readers]
        enumerator = getattr(self, "enumerator", None)
        if enumerator is not None:
            closes.append(("SplitEnumerator.close()", enumerator.close))
        for what, close in closes:
            try:
                if not self._thread.hangs:
                    self._thread.call(what, close)
            except BaseException as error:  # noqa: BLE001 - the others are closed first
                failure = failure or error
        self._thread.close()
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            self.close()
        else:
            with suppress(BaseException):
                self.close()

    # -- for readers ----------------------------------------------------------------------------------

    def readers_call(self, subtask: int, name: str, *arguments: Any) -> Callable[[], None]:
        """A call of a reader's method, to be made later."""
        return lambda: self._thread.call(f"{name}()", getattr(self.readers[subtask], name), *arguments)

    def say(self, call: Callable[[SplitEnumerator[Any]], None]) -> None:
        """A reader sends an event to the enumerator; it arrives when the reader has returned."""

        def arrive() -> None:
            assert self.enumerator is not None
            call(self.enumerator)

        self._said.append(arrive)

    def _add_splits(self, subtask: int, splits: list[Any]) -> None:
        for split in splits:
            owner = next((o.subtask for o in self.outputs if split.split_id in o.splits), None)
            if owner is not None:
                raise ConformanceError(
                    f"Reader {subtask} is given split {split.split_id!r}, which reader {owner} has: its records would "
                    "come twice."
                )
            self.outputs[subtask].splits.add(split.split_id)
        self._thread.call("add_splits()", self.readers[subtask].add_splits, splits)


class _ReaderContext:
    """What a reader sees of its task."""

    execution = PIPELINED
    reuses_objects = False

    def __init__(self, harness: SourceHarness, subtask: int) -> None:
        self._harness = harness
        self.subtask_index = subtask
        self.parallelism = harness.parallelism
        self.attempt_number = harness.attempt
        self._metrics = MetricRegistry()

    def send_split_request(self) -> None:
        subtask = self.subtask_index
        self._harness.say(lambda enumerator: enumerator.handle_split_request(subtask, None))

    def send_source_event(self, event: Any) -> None:
        subtask, copy = self.subtask_index, _copied(event, "an event")
        self._harness.say(lambda enumerator: enumerator.handle_source_event(subtask, copy))

    def get_metrics_group(self) -> MetricRegistry:
        return self._metrics

    def processing_time(self) -> int:
        return time.time_ns() // 1_000_000

    def poll_at(self, timestamp: int) -> None:
        """It is polled all the time."""

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def poll_after(self, delay: int) -> None:
        """It is polled all the time."""


class _Output:
    """Keeps what one reader emits."""

    def __init__(self, harness: SourceHarness, subtask: int) -> None:
        self.subtask = subtask
        self.splits: set[str] = set()
        self.records: list[tuple[str, Any]] = []
        self.on_collect: Callable[[], None] = lambda: None
        self.side: list[Any] = []

    def collect(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        if split_id not in self.splits:
            raise ConformanceError(
                f"Reader {self.subtask} emitted {len(values)} records of split {split_id!r}, which it does not have "
                f"(it has {sorted(self.splits)}): a watermark is kept for each split from when it is added until it is "
                "released."
            )
        if timestamps is not None and len(timestamps) != len(values):
            raise ConformanceError(f"{len(values)} records came with {len(timestamps)} timestamps.")
        self.records += ((split_id, value) for value in values)
        self.on_collect()

    def emit_watermark(self, split_id: str, timestamp: int) -> None:
        if split_id not in self.splits:
            raise ConformanceError(f"A watermark came for split {split_id!r}, which reader {self.subtask} has not.")

    def emit_side(self, tag: Any, values: Sequence[Any]) -> None:
        self.side += values

    def release_split(self, split_id: str) -> None:
        if split_id not in self.splits:
            raise ConformanceError(f"Reader {self.subtask} released split {split_id!r}, which it does not have.")
        self.splits.remove(split_id)


class _AsyncCalls:
    """What an enumerator has done in other threads."""

    def __init__(self) -> None:
        self._results: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(
        self,
        call: Callable[[], Any],
        handler: Callable[[Any, Exception | None], None],
        delay_ms: int,
        period_ms: int | None,
    ) -> None:
        def handle(result: Any, error: Exception | None) -> None:
            handler(result, error)
            if period_ms is not None:
                self.add(call, handler, period_ms, period_ms)

        def run() -> None:
            if self._stop.wait(delay_ms / 1000):
                return
            try:
                result, error = call(), None
            except Exception as raised:  # noqa: BLE001 - the handler decides
                result, error = None, raised
            self._results.put(lambda: handle(result, error))

        thread = threading.Thread(target=current_stores().bind(run), name="conformance-call", daemon=True)
        self._threads.append(thread)
        thread.start()

    def handle(self) -> None:
        while not self._results.empty():
            self._results.get()()
        self._threads = [thread for thread in self._threads if thread.is_alive()]

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10.0)


def _pickled(value: Any, what: str) -> bytes:
    try:
        data = cloudpickle.dumps(value, 5)
        pickle.loads(data)
    except Exception as error:
        raise ConformanceError(f"{what} cannot be pickled ({error}): {value!r}") from error
    return data  # type: ignore[no-any-return]


def _copied(value: Any, what: str) -> Any:
    return pickle.loads(_pickled(value, what))
