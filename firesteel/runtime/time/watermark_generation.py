"""Watermark generation at a source: one generator per split, combined by the minimum over the active splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.model.serialization import preview_record
from firesteel.runtime.time.input_clock import InputClock

__all__ = ["SplitWatermarks", "WatermarkAssigner"]

Emit = Callable[[Sequence[Any], Sequence[int] | None], None]
EmitInTurn = Callable[[Sequence[Any], Sequence[int] | None], int]
_CHECKED_RECORDS = 64


class SplitWatermarks:
    """One split's generator, its last watermark and whether it is idle. Is the generator's WatermarkOutput."""

    def __init__(self, generator: Any, idle_timeout_ms: int | None, now: int):
        self.generator = generator
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        self._is_marked = False
        """Idle because the generator says so: only the generator ends it."""
        self.is_paused = False
        """Watermark alignment holds the split back: that there are no records does not make it idle."""
        self.on_batch = getattr(generator, "on_batch", None)
        self._idle_timeout = idle_timeout_ms
        self.last_event = now
        self._saw_event = False
        self._was_silent = False
        """Whether there was no record before ``periodic`` was called last."""

    def emit_watermark(self, watermark: Any) -> None:
        """Called by the generator; a watermark never goes back."""
        timestamp = watermark if isinstance(watermark, int) else _timestamp_of(watermark)
        self.mark_active()
        if timestamp > self.watermark:
            self.watermark = timestamp

    def mark_idle(self) -> None:
        """Called by the generator: this split no longer holds back the others."""
        self.idle = self._is_marked = True

    def mark_active(self) -> None:
        """Called by the generator: this split counts again."""
        self.idle = self._is_marked = False

    def touch(self) -> None:
        """Records have come."""
        self._saw_event = True
        self.idle = self._is_marked

    def periodic(self, now: int, has_stalled: bool = False) -> None:
        """Asks the generator for its watermark, and notices idleness.

        In a slot that has stalled the split may not have been read: idleness begins when it is noticed, as in
        Flink.
        """
        was_silent, self._was_silent = self._was_silent, not self._saw_event
        if self._saw_event or self.is_paused or (has_stalled and not was_silent):
            self._saw_event = False
            self.last_event = now
        if self._idle_timeout is not None and now - self.last_event >= self._idle_timeout:
            self.idle = True
            return
        self.generator.on_periodic_emit(self)

    def advance(self) -> None:
        """Gets the watermark of the generator, at a time when a lack of records does not indicate idleness."""
        if not self.idle:
            self.generator.on_periodic_emit(self)

    def restart_idle_timeout(self, now: int) -> None:
        """The split may have had records that were not read."""
        self._saw_event = False
        self.last_event = now

    @property
    def idle_at(self) -> int | None:
        """When the split is idle if nothing comes."""
        return None if self.idle or self._idle_timeout is None else self.last_event + self._idle_timeout


class WatermarkAssigner:
    """Assigns timestamps to batches and keeps the combined watermark of all splits.

    Records go out in as few batches as possible: only a generator that emits from ``on_event`` (a punctuated one) cuts
    a batch, right behind the record that carried the watermark. ``emit_in_turn`` may leave records. ``emit`` takes all
    of them: a generator without ``on_batch`` sees each record before it is emitted, and must not see it again.
    Consumers ignore the watermarks of an idle input: the assigner sends that it is active before each of them.

    The assigner is idle when all its splits are. Without splits it becomes idle when it has had none for the idle
    timeout.
    """

    def __init__(
        self,
        strategy: Any,
        clock: InputClock,
        emit_in_turn: EmitInTurn,
        emit: Emit,
        emit_watermark: Callable[[int], None],
        emit_idle: Callable[[bool], None],
        *,
        split_gap_ms: int = 0,
    ):
        """``split_gap_ms``: how long there are no splits although the next one is on its way."""
        self._strategy = strategy
        self._clock = clock
        self._stalls = 0
        """Of which ``periodic`` knew when it was called last."""
        self._emit_in_turn = emit_in_turn
        self._emit = emit
        self._emit_watermark = emit_watermark
        self._emit_idle = emit_idle
        self._split_gap = split_gap_ms
        self._without_splits_since = clock()
        self._ended_at = MIN_TIMESTAMP
        """Without splits: the watermark of the one that ended last, if it is to count when none follows."""
        self._splits: dict[str, SplitWatermarks] = {}
        assigner = strategy.timestamp_assigner
        self._extract = None if assigner is None else getattr(assigner, "extract_timestamp", assigner)
        self._extract_latest: Callable[[Any], int | None] | None = getattr(assigner, "extract_latest", None)
        """For columns: the latest timestamp of a batch."""
        self._extract_rows: Callable[[Any], tuple[Any, Any]] | None = getattr(assigner, "extract_rows", None)
        """For columns whose generator has ``on_rows``: the watermarks and times of all rows of a batch."""
        self._checked = 0
        """Of how many records the timestamps have been checked."""
        self._is_to_resume = False
        self.watermark = MIN_TIMESTAMP
        """The last one sent."""
        self.idle = False
        """The last status sent."""

    def add_split(self, split_id: str) -> None:
        """A split whose watermark counts from now on."""
        if split_id not in self._splits:
            self._ended_at = MIN_TIMESTAMP
            generator = self._strategy.create_watermark_generator()
            self._splits[split_id] = SplitWatermarks(generator, self._strategy.idle_timeout_ms, self._clock())

    def split_watermarks(self) -> dict[str, int]:
        """How far event time has come in each split where it has begun."""
        return {name: split.watermark for name, split in self._splits.items() if split.watermark > MIN_TIMESTAMP}

    def pause_splits_beyond(self, max_allowed: int) -> tuple[list[str], list[str]]:
        """Which splits are to be paused now, as their watermark is beyond, and which resumed."""
        to_pause: list[str] = []
        to_resume: list[str] = []
        for split_id, split in self._splits.items():
            is_beyond = split.watermark > max_allowed
            if is_beyond != split.is_paused:
                split.is_paused = is_beyond
                (to_pause if is_beyond else to_resume).append(split_id)
        return to_pause, to_resume

    @property
    def paused_splits(self) -> int:
        """How many splits wait for others."""
        return sum(split.is_paused for split in self._splits.values())

    def restore(self, watermark: int, splits: Mapping[str, int]) -> None:
        """Restores the watermark; the splits have been added. ``resume`` sends the watermark."""
        for split_id, split in self._splits.items():
            split.watermark = splits.get(split_id, MIN_TIMESTAMP)
        self.watermark = watermark
        self._is_to_resume = watermark > MIN_TIMESTAMP

    def resume(self) -> None:
        """Sends the restored watermark, once."""
        if self._is_to_resume:
            self._is_to_resume = False
            self._emit_watermark(self.watermark)

    def emit_watermark(self, split_id: str, timestamp: int) -> None:
        """A watermark that came with a split's own records."""
        self.add_split(split_id)
        self._splits[split_id].emit_watermark(timestamp)
        self._send_if_advanced()

    def activate(self) -> None:
        """Sends that the watermark counts, which must come before the end of event time."""
        self._set_idle(False)

    def release_split(self, split_id: str, *, keeps_watermark: bool = False) -> None:
        """A split that has ended; ``keeps_watermark`` if its watermark counts when no other split follows."""
        split = self._splits.pop(split_id, None)
        if split is not None and not self._splits:
            self._without_splits_since = self._clock()
            if keeps_watermark:
                split.advance()
                self._ended_at = split.watermark

    def process(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None) -> int:
        """Assigns timestamps, emits the records and lets the split's generator see the timestamps.

        Returns how many of the last records are left as the turn is over. For the generator they have not come yet.
        """
        split = self._splits.get(split_id)
        if split is None:
            self.add_split(split_id)
            split = self._splits[split_id]
        split.touch()
        if self._extract_rows is not None:
            self._process_rows(split, values, *self._extract_rows(values))
            return 0
        if self._extract_latest is not None:
            self._process_columns(split, values, self._extract_latest(values))
            return 0
        extract = self._extract
        if extract is not None:
            if timestamps is None:
                timestamps = [extract(value, MIN_TIMESTAMP) for value in values]
            else:
                timestamps = [extract(value, time) for value, time in zip(values, timestamps, strict=True)]
            # all of the first records, then only the ends of each batch: this is no place for a check per record
            if timestamps and not (
                self._checked >= _CHECKED_RECORDS and timestamps[0].__class__ is int and timestamps[-1].__class__ is int
            ):
                _check_timestamps(values, timestamps)
                self._checked += len(timestamps)
        if split.on_batch is not None:
            left = self._emit_in_turn(values, timestamps)
            if timestamps:
                emitted = timestamps[: len(timestamps) - left] if left else timestamps
                if emitted:
                    split.on_batch(emitted)
            return left
        self._process_one_by_one(split, values, timestamps)
        return 0

    def _process_columns(self, split: SplitWatermarks, values: Sequence[Any], latest: int | None) -> None:
        self._emit(values, None)
        if latest is None:
            return
        if split.on_batch is not None:
            split.on_batch((latest,))
        else:
            split.generator.on_event(values, latest, split)
            self._combine()

    def _process_rows(self, split: SplitWatermarks, values: Sequence[Any], watermarks: Any, times: Any) -> None:
        """Emits a batch of columns, cut where the generator emits a watermark that matters to the next row."""
        if not len(values):
            return
        cuts, last = split.generator.on_rows(watermarks, times, split.watermark)
        start = 0
        for place, watermark in cuts:
            self._emit(values[start:place], None)
            split.emit_watermark(watermark)
            self._combine()
            start = place
        self._emit(values[start:] if start else values, None)
        if last > split.watermark:
            split.emit_watermark(last)
            self._combine()

    def _process_one_by_one(
        self, split: SplitWatermarks, values: Sequence[Any], timestamps: Sequence[int] | None
    ) -> None:
        on_event = split.generator.on_event
        start, before, was_idle = 0, split.watermark, split.idle
        for index, value in enumerate(values):
            on_event(value, MIN_TIMESTAMP if timestamps is None else timestamps[index], split)
            if split.watermark != before or split.idle is not was_idle:
                before, was_idle = split.watermark, split.idle
                end = index + 1
                self._emit(values[start:end], None if timestamps is None else timestamps[start:end])
                start = end
                if was_idle and self._all_idle:
                    # it was active when it emitted its watermark
                    self._send(before)
                self._combine()
        if start < len(values):
            self._emit(values[start:], None if timestamps is None else timestamps[start:])

    def periodic(self) -> None:
        """Asks every generator; sends the combined watermark if it advanced, and idleness if it changed."""
        now = self._clock()
        active = [split for split in self._splits.values() if not split.idle]
        has_stalled, self._stalls = self._clock.stalls != self._stalls, self._clock.stalls
        for split in self._splits.values():
            split.periodic(now, has_stalled)
        if active and self._all_idle:
            # fell silent one after the other, noticed together: the last ones were alone for a while
            silent_since = max(split.last_event for split in active)
            self._send(min(split.watermark for split in active if split.last_event == silent_since))
        self._combine()
        if not self._splits and now - self._without_splits_since >= self._split_gap:
            self._send(self._ended_at)
        idle_at = self._idle_without_splits_at
        if idle_at is not None and now >= idle_at:
            self._set_idle(True)

    def advance(self) -> None:
        """As ``periodic``, but in the middle of reading: which splits become idle is to be seen."""
        self.advance_splits()
        self._combine()

    def advance_splits(self) -> None:
        """Gets the watermarks of the generators, without sending them."""
        for split in self._splits.values():
            split.advance()

    def _combine(self) -> None:
        if self._splits:
            self._send_if_advanced()
            self._set_idle(self._all_idle)

    @property
    def _all_idle(self) -> bool:
        return all(split.idle for split in self._splits.values())

    @property
    def _idle_without_splits_at(self) -> int | None:
        timeout = self._strategy.idle_timeout_ms
        return None if self._splits or self.idle or timeout is None else self._without_splits_since + timeout

    def restart_idle_timeouts(self) -> None:
        """Reading stopped while there were records: it is unknown which splits have none."""
        now = self._without_splits_since = self._clock()
        for split in self._splits.values():
            split.restart_idle_timeout(now)

    @property
    def idle_at(self) -> int | None:
        """When idleness is next to be judged if nothing comes, by the assigner's clock."""
        times = [self._idle_without_splits_at, *(split.idle_at for split in self._splits.values())]
        return min((at for at in times if at is not None), default=None)

    def _send_if_advanced(self) -> None:
        lowest: int | None = None
        for split in self._splits.values():
            if not split.idle and (lowest is None or split.watermark < lowest):
                lowest = split.watermark
        if lowest is not None:
            self._send(lowest)

    def _send(self, lowest: int) -> None:
        if lowest > self.watermark:
            self._set_idle(False)
            self.watermark = lowest
            self._emit_watermark(lowest)

    def _set_idle(self, idle: bool) -> None:
        if idle != self.idle:
            self.idle = idle
            self._emit_idle(idle)


def _timestamp_of(watermark: Any) -> int:
    timestamp = getattr(watermark, "timestamp", None)
    if isinstance(timestamp, int):
        return timestamp
    raise InvalidProgramError(
        f"The watermark generator emitted {preview_record(watermark)}; expected milliseconds as an int.",
        hint="Call output.emit_watermark(max_timestamp - delay - 1) with an int.",
    )


def _check_timestamps(values: Sequence[Any], timestamps: Sequence[Any]) -> None:
    for value, timestamp in zip(values, timestamps, strict=True):
        if not isinstance(timestamp, int):
            raise InvalidProgramError(
                f"The timestamp assigner returned {preview_record(timestamp)} for {preview_record(value)}; "
                "expected milliseconds as an int.",
                hint="Convert in extract_timestamp: int(seconds * 1000), or int(moment.timestamp() * 1000).",
            )
