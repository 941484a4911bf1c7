"""The order in which the tasks of a slot run."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from firesteel.runtime.slot.scheduling import MAX_WAIT_S, TaskScheduler
from firesteel.runtime.time.input_clock import InputClock


class FakeTask:
    """Always has work and room, unless the test says otherwise."""

    times = None
    can_read = True

    def __init__(self, name: str, rank: int, *, is_source: bool = False):
        self.name = name
        self.rank = rank
        self.source = object() if is_source else None
        self.asked_at = 0.0
        self.input_clock = InputClock(lambda: 0)
        self.finished = self.running = False
        self.work = self.room = True
        self.asked = 0

    def has_work(self, now: float) -> bool:
        self.asked += 1
        return self.work

    def has_room(self) -> bool:
        return self.room


class Slot:
    """A scheduler whose turns all take the same time."""

    def __init__(self, *tasks: FakeTask, turn_s: float):
        self.tasks: list[Any] = list(tasks)
        self.scheduler = TaskScheduler(self.tasks)
        self.now = 100.0
        self._turn_s = turn_s
        for task in tasks:
            task.asked_at = self.now

    def run(self, turns: int, above: int = -1) -> list[str]:
        ran = []
        for _ in range(turns):
            task: Any = self.scheduler.next_task(self.now, above)
            ran.append("-" if task is None else task.name)
            self.now += self._turn_s
        return ran


def pipeline() -> tuple[FakeTask, FakeTask, FakeTask]:
    return FakeTask("source", 0, is_source=True), FakeTask("map", 1), FakeTask("sink", 2)


def test_the_most_downstream_task_goes_first() -> None:
    source, middle, sink = pipeline()
    slot = Slot(source, middle, sink, turn_s=0.0)
    assert slot.run(3) == ["sink"] * 3
    sink.work = False
    assert slot.run(2) == ["map"] * 2
    middle.room = False
    assert slot.run(2) == ["source"] * 2
    source.work = False
    assert slot.run(1) == ["-"]
    sink.work = True
    assert slot.run(1) == ["sink"]


def test_tasks_whose_turns_are_long_take_turns() -> None:
    slot = Slot(*pipeline(), turn_s=0.05)
    assert Counter(slot.run(30)) == {"source": 10, "map": 10, "sink": 10}


@pytest.mark.parametrize("turn_s", [MAX_WAIT_S / 64, MAX_WAIT_S / 8, MAX_WAIT_S, 1.0])
@pytest.mark.parametrize("count", [2, 3, 12])
def test_a_task_that_can_run_waits_for_a_bounded_number_of_turns(turn_s: float, count: int) -> None:
    tasks = [FakeTask(str(rank), rank, is_source=rank < 2) for rank in range(count)]
    ran = Slot(*tasks, turn_s=turn_s).run(5_000)
    bound = round(MAX_WAIT_S / turn_s) + count
    for task in tasks:
        turns = [-1, *(turn for turn, name in enumerate(ran) if name == task.name), len(ran)]
        assert max(after - before for before, after in pairwise(turns)) <= bound


def test_a_task_with_short_turns_gets_time_beside_one_with_long_turns() -> None:
    source, _, sink = pipeline()
    slot = Slot(source, sink, turn_s=0.0)
    spent = Counter[str]()
    for _ in range(10_000):
        task: Any = slot.scheduler.next_task(slot.now)
        took = 0.05 if task is sink else 0.0001
        spent[task.name] += took  # type: ignore[assignment]
        slot.now += took
    assert spent["source"] > 0.9 * MAX_WAIT_S / 0.05 * spent["sink"]
    assert spent["sink"] > spent["source"]


def test_preference_remains_where_it_starves_nobody() -> None:
    ran = Counter(Slot(*pipeline(), turn_s=MAX_WAIT_S / 100).run(10_000))
    assert ran["sink"] > 9_700


def test_a_task_that_becomes_able_to_run_is_found_in_time() -> None:
    source, middle, sink = pipeline()
    source.room = False
    slot = Slot(source, middle, sink, turn_s=0.05)
    assert "source" not in slot.run(100)
    source.room = True
    assert "source" in slot.run(3)


def test_tasks_without_work_are_not_asked_at_every_turn() -> None:
    tasks = [FakeTask(str(rank), rank) for rank in range(20)]
    for task in tasks[:-1]:
        task.work = False
    Slot(*tasks, turn_s=MAX_WAIT_S / 10).run(1_000)
    assert sum(task.asked for task in tasks[:-1]) <= 19 * 101


def test_sources_take_turns() -> None:
    sources = [FakeTask(name, rank, is_source=True) for rank, name in enumerate("abc")]
    assert Counter(Slot(*sources, turn_s=0.0).run(9)) == {"a": 3, "b": 3, "c": 3}


def test_only_tasks_of_a_higher_rank_run_while_one_waits_for_room() -> None:
    source, middle, sink = pipeline()
    slot = Slot(source, middle, sink, turn_s=0.05)
    assert slot.run(10, above=1) == ["sink"] * 10
    sink.work = False
    assert slot.run(2, above=1) == ["-"] * 2
    assert slot.run(2, above=0) == ["map"] * 2


def test_tasks_on_the_stack_and_finished_tasks_do_not_run() -> None:
    source, middle, sink = pipeline()
    sink.running = middle.finished = True
    assert Slot(source, middle, sink, turn_s=0.05).run(4) == ["source"] * 4
