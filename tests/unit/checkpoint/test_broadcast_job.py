"""Broadcast state of whole jobs: checkpointed by every subtask, restored, rescaled, and looked into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running_jobs import (
    Gate,
    GatedSink,
    Probe,
    RunningJob,
    clock_of_today,
    environment,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    phases,
    source,
    start,
)

from firesteel.cli.main import main
from firesteel.datastream import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor
from firesteel.runtime.checkpoint.handles import BROADCAST
from firesteel.savepoint.contents import operator_lists
from firesteel.testing import ABORT

RULES = MapStateDescriptor("rules")
WAITING = ListStateDescriptor("waiting")
HOUR = 3_600_000
RETAIN = {"execution__checkpointing__externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION"}
UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true", "taskmanager__memory__segment_size": "2 kb"}


class Apply(KeyedBroadcastProcessFunction):
    """Gives each record its rule; those without one wait until it comes."""

    def open(self, runtime_context: Any) -> None:
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, value: Any, ctx: Any) -> Any:
        rule = ctx.get_broadcast_state(RULES).get(value[0])
        if rule is None:
            self.waiting.add(value)
        else:
            yield *value, rule

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)
        results: list[Any] = []

        def release(key: Any, state: Any) -> None:
            if key == value[0]:
                results.extend((*waiting, value[1]) for waiting in state.get())
                state.clear()

        ctx.apply_to_keyed_state(WAITING, release)
        return results


def priced(env: Any, records: Any, rules: Any) -> Any:
    main_side = source(env, records, uid="records").key_by(lambda record: record[0])
    broadcast = source(env, rules, uid="rules").broadcast(RULES)
    return main_side.connect(broadcast).process(Apply()).uid("apply")


def records(first: int, stop: int) -> list[tuple[str, int]]:
    return [(f"k{number % 8}", number) for number in range(first, stop)]


def rules(first: int, stop: int) -> list[tuple[str, str]]:
    return [(f"k{number}", f"rule {number}") for number in range(first, stop)]


def expected(count: int) -> list[tuple[str, int, str]]:
    return sorted((key, number, f"rule {key[1:]}") for key, number in records(0, count))


def test_after_a_failure_every_subtask_has_its_rules_again(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    late = [ABORT(), *records(40, 60)]
    job = start(priced(env, phases(clock, records(0, 40), late), phases(clock, rules(0, 4), rules(4, 8))))
    stored = metadata_of(job.runs(clock).checkpoint())
    (state,) = [operator for operator in stored.operators if operator.uid == "apply"]
    assert [len(subtask.operator) for _, subtask in sorted(state.subtasks.items())] == [1, 1]
    clock.advance(HOUR)
    assert sorted(job.wait()) == expected(60)
    assert job.attempt == 1


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_at_another_parallelism_on_the_other_backend(backend: str, before: int, after: int, tmp_path: Path) -> None:
    """Half of the rules are in the savepoint, the records of the other half wait in it."""
    clock = clock_of_today()

    def run(parallelism: int, name: str, **overrides: str) -> RunningJob:
        env = environment(tmp_path, parallelism, clock, state__backend__type=name, **overrides)
        stream = priced(env, phases(clock, records(0, 40), records(40, 60)), phases(clock, rules(0, 4), rules(4, 8)))
        return start(stream).runs(clock)

    first = run(before, backend)
    path = first.stop()
    assert {key for key, _, _ in first.results} == {f"k{number}" for number in range(4)}
    other = "rocksdb" if backend == "hashmap" else "hashmap"
    second = run(after, other, execution__state_recovery__path=path)
    clock.advance(HOUR)
    assert sorted(first.results + second.wait()) == expected(60)


def test_a_savepoint_shows_one_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    job = start(priced(env, phases(clock, records(0, 8), []), phases(clock, rules(0, 5), []))).runs(clock)
    path = job.stop()
    (state,) = [operator for operator in metadata_of(path).operators if operator.uid == "apply"]
    assert [(each.name, each.mode, each.items) for each in operator_lists(state)] == [("rules", BROADCAST, 5)]
    assert main(["savepoint", "inspect", path]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "rules" in line and "broadcast" in line]
    assert "5" in line


class Sequence(BroadcastProcessFunction):
    """Every record of the broadcast side with the number of those before it, in this subtask, as its state has it."""

    def __init__(self, probe: Probe):
        self.probe = probe

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        state = ctx.get_broadcast_state(RULES)
        state.put("seen", [*(state.get("seen") or []), value])
        if value == LAST:
            self.probe.add((self.subtask, state.get("seen")))
        yield value


LAST = 5_999


@pytest.mark.parametrize("after", [1, 2, 3])
def test_rules_in_flight_at_an_unaligned_checkpoint_reach_every_subtask_once(after: int, tmp_path: Path) -> None:
    """Each subtask goes on from one old subtask's state and what that one had not processed yet."""
    clock = clock_of_today()
    gate, probe = Gate(), Probe()

    def run(parallelism: int, **overrides: str) -> RunningJob:
        env = environment(tmp_path, parallelism, clock, **UNALIGNED, **RETAIN, **overrides)
        broadcast = source(env, phases(clock, range(3_000), range(3_000, LAST + 1)), uid="rules").set_parallelism(1)
        numbers = source(env, phases(clock, [], []), uid="numbers")
        stream = numbers.connect(broadcast.broadcast(RULES)).process(Sequence(probe)).uid("apply")
        return start(stream, GatedSink("results", gate))

    first = run(2).runs(clock)
    path = first.handle.trigger_checkpoint().result(30)
    assert any("#1" in channel.edge for channel in metadata_of(path).channels), "rules are in flight"
    first.cancel()
    gate.open()
    second = run(after, execution__state_recovery__path=path).runs(clock)
    clock.advance(HOUR)
    second.wait()
    assert sorted(subtask for subtask, _ in probe.values) == list(range(after))
    assert all(seen == list(range(LAST + 1)) for _, seen in probe.values)
