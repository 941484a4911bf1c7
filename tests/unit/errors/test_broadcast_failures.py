"""What a failed job says of broadcast functions: the side's own method, element and key, or that there is none."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.errors import JobExecutionError, TaskFailure
from firesteel.datastream import KeyedBroadcastProcessFunction
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.testing import collect, test_environment

RULES = MapStateDescriptor("rules")
COUNT = ValueStateDescriptor("count")


class Fail(KeyedBroadcastProcessFunction):
    """Fails where it is told to."""

    def __init__(self, where: str):
        self.where = where

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update(1)
        if self.where == "main":
            ctx.get_broadcast_state(RULES).put("a", 1)
        ctx.timer_service().register_event_time_timer(5)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        if self.where == "broadcast":
            raise ValueError("not a rule")
        if self.where == "keyed state":
            self.count.value()

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        if self.where == "timer":
            raise ValueError(timestamp)


def failure_of(where: str) -> TaskFailure:
    env = test_environment()
    rules = env.from_collection(["rule"]).broadcast(RULES)
    stream = env.from_collection([("k", 1)]).key_by(lambda pair: pair[0]).connect(rules)
    with pytest.raises(JobExecutionError) as caught:
        collect(stream.process(Fail(where)).name("apply"))
    assert caught.value.failure.operator == "apply"
    assert caught.value.failure.user_file == __file__
    return caught.value.failure


def test_the_main_side() -> None:
    failure = failure_of("main")
    assert (failure.element, failure.key) == ("('k', 1)", "'k'")
    assert "'rules' is read-only" in failure.message
    assert failure.user_source == 'ctx.get_broadcast_state(RULES).put("a", 1)'


def test_the_broadcast_side_has_no_key() -> None:
    failure = failure_of("broadcast")
    assert (failure.element, failure.key) == ("'rule'", None)
    assert failure.user_source == 'raise ValueError("not a rule")'


def test_keyed_state_on_the_broadcast_side() -> None:
    failure = failure_of("keyed state")
    assert (failure.element, failure.key) == ("'rule'", None)
    assert "apply_to_keyed_state" in (failure.hint or "")


def test_a_timer() -> None:
    assert failure_of("timer").key == "'k'"
