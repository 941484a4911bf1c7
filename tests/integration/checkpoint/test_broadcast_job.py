"""Broadcast state of whole jobs: checkpointed by every subtask, restored, rescaled, and looked into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.cli.main import main
from firesteel.connectors.client.collect_sink import CollectWriter
from firesteel.datastream import KeyedBroadcastProcessFunction
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.runtime.model.state_handles import BROADCAST
from firesteel.savepoint.metadata_contents import operator_lists
from firesteel.spi.sink import WriterContext
from firesteel.testing import ABORT, eventually
from tests.support.jobs.running_jobs import (
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


COUNT = ValueStateDescriptor("count")


class CountRules(KeyedBroadcastProcessFunction):
    """Counts for each key the rules that came since it was first seen; gives the count when the key comes again."""

    def __init__(self, probe: Probe):
        self.probe = probe

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.count.value() is None:
            self.count.update(0)
            self.probe.add(value)
        else:
            yield value, self.count.value()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.apply_to_keyed_state(COUNT, lambda _key, state: state.update(state.value() + 1))
        state = ctx.get_broadcast_state(RULES)
        state.put("last", value)
        self.probe.add((self.subtask, value))
        return []


class HalfGatedSink(GatedSink):
    """Collects; its gate is that of one subtask."""

    def create_writer(self, context: WriterContext) -> CollectWriter:
        return super().create_writer(context) if context.subtask_index else CollectWriter(context, self.channel)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_every_key_gets_every_rule_once_when_one_subtask_is_behind_at_an_unaligned_checkpoint(
    after: int, tmp_path: Path
) -> None:
    """Rules are never in flight: the keys of a subtask that has not read them may go to one that has, or the other
    way round."""
    clock = clock_of_today()
    gate, probe = Gate(is_open=True), Probe()
    names = [f"k{number}" for number in range(20)]
    keys, rules = phases(clock, names, [], names), phases(clock, [], range(50), [])

    def run(parallelism: int, **overrides: str) -> RunningJob:
        env = environment(tmp_path, parallelism, clock, **UNALIGNED, **RETAIN, **overrides)
        broadcast = source(env, rules, uid="rules").set_parallelism(1).broadcast(RULES)
        keyed = source(env, keys, uid="keys").set_parallelism(1).key_by(lambda key: key)
        return start(keyed.connect(broadcast).process(CountRules(probe)).uid("apply"), HalfGatedSink("results", gate))

    first = run(2).runs(clock)
    probe.awaits(len(names))
    gate.close()
    clock.advance(HOUR)
    eventually(lambda: (0, 49) in probe.values)
    checkpoint = first.handle.trigger_checkpoint()
    eventually(lambda: first.statistics["counts"]["in_progress"] == 1 or checkpoint.done())
    clock.settle()
    gate.open()
    path = checkpoint.result(120)
    assert not metadata_of(path).channels
    first.cancel()
    second = run(after, execution__state_recovery__path=path).runs(clock)
    clock.advance(HOUR)
    assert sorted(second.wait()) == sorted((name, 50) for name in names)
