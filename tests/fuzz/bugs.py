"""Bugs, put into the product one at a time: each must be found by programs drawn at random.

Those down to ``starving_tasks`` are bugs that it once had. The others, of joins, evictors and async functions, are made
up.

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
from firesteel.datastream.streams.interval_join import IntervalJoined
from firesteel.datastream.windowing.evictors import CountEvictor, TimeEvictor
from firesteel.runtime.model import key_groups
from firesteel.runtime.operators.async_wait import operator as async_operator
from firesteel.runtime.operators.async_wait.calls import AsyncCalls
from firesteel.runtime.operators.async_wait.operator import AsyncWaitOperator
from firesteel.runtime.operators.async_wait.queue import UnorderedQueue
from firesteel.runtime.operators.interval_join import IntervalJoinOperator
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from firesteel.runtime.operators.window.evicting import EvictingWindowOperator
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


def short_join_state() -> list[Any]:
    """An interval join keeps records a millisecond too short."""
    original = IntervalJoinOperator.__init__

    def init(operator: Any, spec: Any) -> None:
        original(operator, spec)
        operator._delays = tuple(max(delay - 1, 0) for delay in operator._delays)

    return [patch.object(IntervalJoinOperator, "__init__", init)]


def exclusive_bound() -> list[Any]:
    """The exclusive lower bound of an interval join is inclusive."""
    return [patch.object(IntervalJoined, "lower_bound_exclusive", lambda streams: streams)]


def late_join_records() -> list[Any]:
    """An interval join drops late records of the right stream that have a side output."""
    original = IntervalJoinOperator.__init__

    def init(operator: Any, spec: Any) -> None:
        original(operator, spec)
        operator._late_tags = (operator._late_tags[0], None)

    return [patch.object(IntervalJoinOperator, "__init__", init)]


def wrong_end_evicted() -> list[Any]:
    """A CountEvictor keeps the first elements instead of the last ones."""
    return [patch.object(CountEvictor, "_evict", lambda evictor, elements: elements[: evictor.max_count])]


def oldest_kept() -> list[Any]:
    """A TimeEvictor keeps an element that is older than the latest one by exactly its size."""

    def evict(evictor: Any, elements: Any) -> Any:
        if not elements or not elements[0].has_timestamp():
            return elements
        cutoff = max(element.get_timestamp() for element in elements) - evictor.window_size
        return [element for element in elements if element.get_timestamp() >= cutoff]

    return [patch.object(TimeEvictor, "_evict", evict)]


def evicted_elements_stay() -> list[Any]:
    """What is evicted is in the window again when it is evaluated for the next time."""
    original = EvictingWindowOperator._fire

    def fire(operator: Any, stored: Any, key: Any, window: Any, *, keeps: bool) -> None:
        original(operator, stored, key, window, keeps=False)

    return [patch.object(EvictingWindowOperator, "_fire", fire)]


def unordered_results() -> list[Any]:
    """Results of ordered_wait are emitted as they come."""
    return [patch.object(async_operator, "OrderedQueue", UnorderedQueue)]


def overtaken_results() -> list[Any]:
    """Watermarks overtake the results of async functions."""
    return [patch.object(AsyncWaitOperator, "_add_border", AsyncWaitOperator._emit_border)]


def lost_calls() -> list[Any]:
    """A checkpoint does not have the records whose calls are under way."""
    return [patch.object(async_operator, "snapshot_of", lambda *_arguments: [])]


def misplaced_calls() -> list[Any]:
    """After a restore with another parallelism, calls of a keyed stream are in other subtasks than their keys."""
    return [patch.object(AsyncWaitOperator, "_owner_of_key", lambda _operator: None)]


def no_results_after_timeout() -> list[Any]:
    """A call that times out has no results."""

    def time_out(calls: Any, call: Any) -> None:
        call.has_timed_out = True
        del calls._pending[call]
        call.task.cancel()
        calls._accept(call, [])

    return [patch.object(AsyncCalls, "_time_out", time_out)]


def one_retry_too_few() -> list[Any]:
    """A call is retried once less often than its strategy says."""
    original = AsyncCalls._is_retried

    def is_retried(calls: Any, predicate: Any, outcome: Any, attempts: int) -> bool:
        return original(calls, predicate, outcome, attempts + 1)

    return [patch.object(AsyncCalls, "_is_retried", is_retried)]


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
        short_join_state,
        exclusive_bound,
        late_join_records,
        wrong_end_evicted,
        oldest_kept,
        evicted_elements_stay,
        unordered_results,
        overtaken_results,
        lost_calls,
        misplaced_calls,
        no_results_after_timeout,
        one_retry_too_few,
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
