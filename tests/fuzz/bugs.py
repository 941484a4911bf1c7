"""Bugs that the product once had, put back one at a time: each must be found by programs drawn at random.

A function here changes the product in this process, for as long as the process lives or the patches are undone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from firesteel.config import option as config_options
from firesteel.config import pipeline_options
from firesteel.runtime.model import key_groups
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from firesteel.runtime.slot import scheduling
from firesteel.runtime.task import channel_state
from firesteel.runtime.time.timers import TimerQueue
from firesteel.runtime.time.watermark_generation import WatermarkAssigner

__all__ = ["BUGS", "put_back"]


def idle_watermarks() -> list[Any]:
    """Watermarks are sent while the input counts as idle, and so thrown away; also the last one."""

    def send(assigner: Any, lowest: int) -> None:
        if lowest > assigner.watermark:
            assigner.watermark = lowest
            assigner._emit_watermark(lowest)

    return [
        patch.object(WatermarkAssigner, "_send", send),
        patch.object(WatermarkAssigner, "activate", lambda _assigner: None),
    ]


def readers_without_splits() -> list[Any]:
    """A reader without splits never becomes idle."""
    return [patch.object(WatermarkAssigner, "_idle_without_splits_at", None)]


def idle_in_flight() -> list[Any]:
    """An idle status in flight in an unaligned checkpoint comes back to a producer that begins as active."""
    return [patch.object(channel_state, "WatermarkStatus", type("Nothing", (), {}))]


def row_keys() -> list[Any]:
    """Equal rows with fields in another order are different keys."""
    return [patch.object(key_groups, "_order_of", lambda _names: None)]


def deleted_timers() -> list[Any]:
    """Deleted timers stay in the heap until their time."""
    return [patch.object(TimerQueue, "compact", lambda _queue: None)]


def restored_watermark() -> list[Any]:
    """In mid-stream every subtask is restored with the watermark of the last one."""
    original = TimestampsAndWatermarksOperator.open

    def open_(operator: Any, context: Any) -> None:
        restored = operator._restored
        original(operator, context)
        if restored is not None:
            operator._assigner._splits[""].watermark = restored.subtasks[-1].sent

    return [patch.object(TimestampsAndWatermarksOperator, "open", open_)]


def shared_objects() -> list[Any]:
    """State, accumulators and emitted records are one object, as if objects were to be reused."""
    always = config_options.ConfigOptions.key("tests.object-reuse").boolean_type().default_value(True)
    return [patch.object(pipeline_options, "OBJECT_REUSE", always)]


def starving_tasks() -> list[Any]:
    """The most downstream task of a slot always goes first."""
    return [patch.object(scheduling, "MAX_WAIT_S", math.inf)]


BUGS: dict[str, Callable[[], list[Any]]] = {
    bug.__name__: bug
    for bug in (
        idle_watermarks,
        readers_without_splits,
        idle_in_flight,
        row_keys,
        deleted_timers,
        restored_watermark,
        shared_objects,
        starving_tasks,
    )
}


@contextmanager
def put_back(name: str) -> Iterator[None]:
    """The product with a bug."""
    patches = BUGS[name]()
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()
