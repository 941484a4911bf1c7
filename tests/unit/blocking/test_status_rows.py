"""Statuses of inputs in the rows between stages."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from firesteel.execution.stages.exchange_rows import EVENTS
from firesteel.execution.stages.stage_task import StageTask
from firesteel.runtime.model.elements import ControlEvent, Watermark, WatermarkStatus

ACTIVE, IDLE = WatermarkStatus(False), WatermarkStatus(True)


class Outputs:
    """A task with one consumer, for which it has produced some events."""

    def __init__(self, events: list[ControlEvent]):
        self._events = iter(events)
        subpartition = SimpleNamespace(sender=events, poll=self._poll)
        partition = SimpleNamespace(subpartitions=[subpartition])
        self.task = SimpleNamespace(outputs=[SimpleNamespace(partition=partition)])

    def _poll(self) -> tuple[ControlEvent] | None:
        event = next(self._events, None)
        return None if event is None else (event,)

    def sends(self, output: int, channel: int, event: ControlEvent) -> bool:
        return True

    def row(self, kind: int, output: int, channel: int, payload: bytes) -> Iterator[Any]:
        assert kind == EVENTS
        yield from pickle.loads(payload)


def test_only_the_last_of_several_statuses_is_sent() -> None:
    events = [ACTIVE, IDLE, ACTIVE, IDLE, Watermark(5), ACTIVE, Watermark(7), IDLE, ACTIVE]
    # a consumer passes each flip on, and has several inputs that flip: their number would grow from stage to stage
    sent = list(StageTask.take_rows(Outputs(events)))  # type: ignore[arg-type]
    assert sent == [IDLE, Watermark(5), ACTIVE, Watermark(7), ACTIVE]
