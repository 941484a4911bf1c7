"""The runner of stages in this process: what it does on purpose, with tasks that only pass numbers on."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.errors import JobCancelledError, TaskFailure
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.exchange_rows import BATCH, REPORT, pack_number, pack_row, unpack_row
from firesteel.execution.stages.stage_graph import in_stage_order, stage_descriptors, stages_of
from firesteel.execution.stages.stage_runner import EpochRun, StageError
from firesteel.execution.stages.task_commands import BatchCommand, BatchReport, EpochCommand, EpochReport
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import TaskStateChanged
from firesteel.spi import execution_traits
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault
from tests.support.epochs.executions import executed_as
from tests.support.epochs.passing_on import graph_of

SOURCE_ROWS = 5


def two_stages(parallelism: int = 2) -> JobGraph:
    return graph_of(lambda env: env.from_sequence(1, 4).rebalance().map(str).print(), parallelism)


def diamond(env: StreamExecutionEnvironment) -> None:
    """A source read by two vertices of different width, which are read by one."""
    numbers = env.from_sequence(1, 4)
    left = numbers.rebalance().map(str).name("left").set_parallelism(1)
    right = numbers.rebalance().map(str).name("right").set_parallelism(3)
    left.union(right).rebalance().map(str).name("both").set_parallelism(2).print().set_parallelism(2)


class PassingOn(InProcessStageRunner):
    """Each source task sends numbered rows to everybody; each other task notes what it read, in order, and reports."""

    def __init__(self, faults: Iterable[TaskFault] = (), **settings: Any):
        super().__init__(faults, **settings)
        self.read: dict[tuple[str, int], list[Any]] = {}
        self.commands: list[Any] = []
        self.broken_off: list[tuple[str, int]] = []

    def run_task(self, command: Any, rows: Iterable[bytes]) -> Iterator[bytes]:
        self.commands.append(command)
        task = command.descriptor.task
        key = task.name, task.subtask
        offsets = command.descriptor.output_offsets
        try:
            passed_on, mine = [], []
            for row in rows:
                read = unpack_row(row)
                if read.kind == REPORT:
                    passed_on.append(row)
                else:
                    mine.append(pickle.loads(read.payload))
            self.read[key] = mine
            for number in range(SOURCE_ROWS) if not command.descriptor.input_edges else ():
                for offset, output in zip(offsets, task.outputs, strict=True):
                    for channel in output.channels:
                        # sent backwards: only sorted are they in order
                        yield pack_number(offset + channel.consumer, SOURCE_ROWS - number)
                        yield pack_row(BATCH, 0, task.subtask, number, pickle.dumps((task.subtask, number)))
            report = BatchReport(task.vertex_id, task.subtask)
            if isinstance(command, EpochCommand):
                report = EpochReport(task.vertex_id, task.subtask, command.epoch)  # type: ignore[assignment]
            own = pack_row(REPORT, 0, task.subtask, 0, pickle.dumps([report]))
            for row in [*passed_on, own]:
                yield pack_number(offsets[0] if offsets else 0, 1 << 30)
                yield row
        except GeneratorExit:
            self.broken_off.append(key)
            raise


def batch_commands(graph: JobGraph) -> dict[Any, BatchCommand]:
    descriptors = stage_descriptors(executed_as(JobExecution.BATCH, graph), 0)
    return {key: BatchCommand(descriptor) for key, descriptor in descriptors.items()}


def epoch_of(graph: JobGraph, epoch: int = 1) -> EpochRun:
    descriptors = stage_descriptors(executed_as(JobExecution.EPOCHS, graph), 0)
    return EpochRun(epoch, {key: EpochCommand(descriptor, epoch, None) for key, descriptor in descriptors.items()})


def tasks_of(graph: JobGraph) -> list[tuple[str, int]]:
    return [(vertex.id, subtask) for vertex in graph.vertices for subtask in range(vertex.parallelism)]


# -- commands ---------------------------------------------------------------------------------------


def test_descriptors_say_where_rows_go() -> None:
    graph = graph_of(diamond, 2)
    source, left, right, both = graph.vertices
    descriptors = stage_descriptors(executed_as(JobExecution.BATCH, graph), 3)
    assert list(descriptors) == tasks_of(graph)
    first = descriptors[source.id, 0]
    assert first.task.execution == execution_traits.BATCH
    assert first.task.attempt == 3
    assert [graph.edges[edge].target_vertex for edge in first.output_edges] == [left.id, right.id]
    assert first.output_offsets == (0, 1)
    assert first.input_edges == ()
    last = descriptors[both.id, 1]
    assert [graph.edges[edge].source_vertex for edge in last.input_edges] == [left.id, right.id]
    assert len(last.task.inputs) == 2
    assert last.output_edges == ()


def test_two_edges_between_the_same_vertices_share_partitions() -> None:
    def twice(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 4)
        numbers.rebalance().union(numbers.broadcast()).map(str).print()

    graph = graph_of(twice, 3)
    descriptor = stage_descriptors(executed_as(JobExecution.EPOCHS, graph), 0)[graph.vertices[0].id, 1]
    assert len(descriptor.output_edges) == 2
    assert len(set(descriptor.output_edges)) == 2
    assert descriptor.output_offsets == (0, 0)
    assert stages_of(graph)[0].partitions == 3


def test_a_subtask_knows_only_its_own_edges() -> None:
    """With forward and rescale edges, a subtask has some of the channels; the edges stay those of its descriptors."""
    graph = graph_of(
        lambda env: env.from_sequence(1, 9).rescale().map(str).set_parallelism(2).disable_chaining().print(), 4
    )
    for descriptor in stage_descriptors(executed_as(JobExecution.BATCH, graph), 0).values():
        assert len(descriptor.input_edges) == len(descriptor.task.inputs)
        assert len(descriptor.output_edges) == len(descriptor.task.outputs) == len(descriptor.output_offsets)


def test_stages_know_their_producers_and_consumers() -> None:
    source, left, right, both = stages_of(graph_of(diamond, 2))
    assert source.is_source
    assert not source.is_terminal
    assert source.partitions == 4
    assert source.consumer(right.id).partitions == range(1, 4)
    assert left.producers == (source.id,)
    assert set(both.producers) == {left.id, right.id}
    assert both.is_terminal
    assert both.partitions == 0


def test_reports_come_in_the_order_of_the_stages() -> None:
    graph = graph_of(diamond, 2)
    reports = [[BatchReport(*key)] for key in tasks_of(graph)]
    shuffled = random.Random(3).sample(reports, len(reports))
    assert in_stage_order(graph, shuffled) == [message for report in reports for message in report]


# -- the runner -------------------------------------------------------------------------------------


def test_every_task_reports_once_sources_first() -> None:
    graph = graph_of(diamond, 2)
    messages = PassingOn().run_batch(graph, batch_commands(graph))
    assert [(message.vertex_id, message.subtask) for message in messages] == tasks_of(graph)  # type: ignore[union-attr]


def test_rows_of_a_batch_are_sorted_by_order() -> None:
    graph = two_stages()
    stages = PassingOn()
    stages.run_batch(graph, batch_commands(graph))
    reader = graph.vertices[1].name
    for subtask in range(2):
        read = stages.read[reader, subtask]
        assert len(read) == 2 * SOURCE_ROWS
        assert [number for _, number in read] == sorted((number for _, number in read), reverse=True)


def test_rows_of_an_epoch_keep_the_order_of_their_producer_and_no_other() -> None:
    graph = two_stages()
    reader = graph.vertices[1].name
    arrivals = set()
    for seed in range(5):
        stages = PassingOn(seed=seed)
        stages.run_epoch(graph, epoch_of(graph))
        read = stages.read[reader, 0]
        for producer in range(2):
            assert [number for source, number in read if source == producer] == list(range(SOURCE_ROWS))
        arrivals.add(tuple(read))
    assert len(arrivals) > 1


def test_each_task_has_its_own_copy_of_its_order() -> None:
    graph = two_stages()
    commands = batch_commands(graph)
    stages = PassingOn()
    stages.run_batch(graph, commands)
    assert len(stages.commands) == len(commands)
    assert not {id(command) for command in stages.commands} & {id(command) for command in commands.values()}


@pytest.mark.parametrize("after_rows", [0, 3, None])
def test_a_task_that_breaks_off_is_run_again_and_leaves_nothing(after_rows: int | None) -> None:
    graph = two_stages()
    source, reader = (vertex.name for vertex in graph.vertices)
    fault = TaskFault(FaultKind.RETRY, vertex=graph.vertices[0].id, subtask=1, after_rows=after_rows)
    stages = PassingOn([fault])
    stages.run_batch(graph, batch_commands(graph))
    assert stages.executed[1:3] == [(source, 1, "retry"), (source, 1, "finished")]
    assert all(len(stages.read[reader, subtask]) == 2 * SOURCE_ROWS for subtask in range(2))
    assert (stages.broken_off == [(source, 1)]) == (after_rows == 3)
    assert stages.faults == []


def test_a_fault_finds_its_epoch() -> None:
    graph = two_stages()
    stages = PassingOn([TaskFault(FaultKind.FAIL, epoch=2)])
    stages.run_epoch(graph, epoch_of(graph, 1))
    with pytest.raises(StageError) as caught:
        stages.run_epoch(graph, epoch_of(graph, 2))
    assert caught.value.messages == ()
    stages.run_epoch(graph, epoch_of(graph, 2))


def test_a_batch_goes_on_with_the_stage_that_failed() -> None:
    graph = graph_of(diamond, 2)
    stages = PassingOn([TaskFault(FaultKind.FAIL, vertex="both", subtask=1, after_rows=None)])
    commands = batch_commands(graph)
    with pytest.raises(StageError):
        stages.run_batch(graph, commands)
    before = len(stages.executed)
    messages = stages.run_batch(graph, commands)
    both = graph.vertices[-1].name
    assert stages.executed[before:] == [(both, 0, "finished"), (both, 1, "finished")]
    assert [(message.vertex_id, message.subtask) for message in messages] == tasks_of(graph)  # type: ignore[union-attr]


def test_what_a_task_says_of_its_failure_comes_with_the_error() -> None:
    failure = TaskStateChanged(0, "v", 0, "FAILED", TaskFailure("bad", "ValueError"))

    class Failing(InProcessStageRunner):
        def run_task(self, command: Any, rows: Iterable[bytes]) -> Iterator[bytes]:
            raise StageTaskError([failure])

    graph = two_stages()
    with pytest.raises(StageError) as caught:
        Failing().run_batch(graph, batch_commands(graph))
    assert caught.value.messages == (failure,)
    assert "firesteel-messages" not in str(caught.value)


def test_cancelling_ends_a_run_whatever_the_task_makes_of_it() -> None:
    class Cancelled(PassingOn):
        def run_task(self, command: Any, rows: Iterable[bytes]) -> Iterator[bytes]:
            for item in super().run_task(command, rows):
                if command.descriptor.input_edges:
                    self.cancel("enough")
                yield item

    graph = two_stages()
    stages = Cancelled()
    with pytest.raises(StageError, match="enough"):
        stages.run_batch(graph, batch_commands(graph))
    # the next run is another one
    with pytest.raises(StageError, match="enough"):
        stages.run_batch(graph, batch_commands(graph))


def test_the_states_of_tasks_are_told() -> None:
    graph = two_stages(1)
    told: list[Any] = []
    stages = PassingOn()
    stages.on_task_state = lambda key, state: told.append((key[0], state))
    stages.run_batch(graph, batch_commands(graph))
    first, last = (vertex.id for vertex in graph.vertices)
    assert told == [(vertex, state) for vertex in (first, last) for state in ("RUNNING", "FINISHED")]


def test_a_row_for_a_partition_that_nobody_has_is_a_bug() -> None:
    class Lost(InProcessStageRunner):
        def run_task(self, command: Any, rows: Iterable[bytes]) -> Iterator[bytes]:
            yield pack_number(17)
            yield pack_row(BATCH, 0, 0, 0, b"")

    graph = two_stages()
    with pytest.raises(AssertionError, match="no partition 17"):
        Lost().run_batch(graph, batch_commands(graph))


def test_cancelling_a_job_whose_source_waits(in_process_env: Any) -> None:
    """The source and the sink are one task, which neither reads nor produces rows."""
    env = in_process_env(1, {"execution.runtime-mode": "BATCH"})
    slow = DataGeneratorSource(str, 1000, RateLimiterStrategy.per_second(1))
    env.from_source(slow, WatermarkStrategy.no_watermarks(), "slow").sink_to(CollectSink("slow"))
    client = env.execute_async("slow")
    client.cancel().result(120)
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result(120)
