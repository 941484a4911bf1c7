"""What each slot computes of a deployment fits what all others compute."""

from __future__ import annotations

import pickle
from typing import Any, ClassVar

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.deployment import Deployment
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.graph.slots import assign_slots
from firesteel.graph.transformation import PartitionTransformation
from firesteel.runtime.model.deployment import ChannelDescriptor, ChannelRange, TaskDeploymentDescriptor
from firesteel.runtime.model.partitioner import RescalePartitioner
from firesteel.spi import execution_traits
from firesteel.spi.sink import Sink


@pytest.fixture
def job(program) -> JobGraph:
    """Two sources of different width, a keyed operator that reads both, and a sink behind a rescale."""
    narrow, wide = program.source("narrow", parallelism=2), program.source("wide", parallelism=5)
    keyed = program.keyed(program.union(narrow, wide), parallelism=3)
    program.sink(PartitionTransformation(keyed, RescalePartitioner()), parallelism=7)
    return program.job_graph()


def tasks_of(job: JobGraph) -> list[TaskDeploymentDescriptor]:
    """Each slot's tasks, from a deployment of its own."""
    return [task for slot in range(assign_slots(job).total) for task in Deployment(job, 3).tasks_in(slot)]


def test_every_subtask_is_in_its_slot_once(job: JobGraph) -> None:
    slots = assign_slots(job)
    found = {(task.vertex_id, task.subtask): task.slot for task in tasks_of(job)}
    assert found == {
        (vertex.id, subtask): slots.slot_of(vertex.id, subtask)
        for vertex in job.vertices
        for subtask in range(vertex.parallelism)
    }
    assert {task.attempt for task in tasks_of(job)} == {3}


def test_both_ends_of_every_channel_agree(job: JobGraph) -> None:
    sent, received = {}, {}
    for task in tasks_of(job):
        for output in task.outputs:
            for channel in output.channels:
                assert (channel.producer, channel.producer_slot) == (task.subtask, task.slot)
                assert channel.id not in sent
                sent[channel.id] = channel, output.edge
        for entry in task.inputs:
            for channel in entry.channels:
                assert (channel.consumer, channel.consumer_slot) == (task.subtask, task.slot)
                assert channel.id not in received
                received[channel.id] = channel, entry.edge
    assert sent == received
    assert sorted(sent) == list(range(2 * 3 + 5 * 3 + 7))


class GlobalSink(Sink):
    """A sink with one committer for all writers."""

    commits_globally: ClassVar[bool] = True

    def create_writer(self, context: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("parallelism", [1, 3])
def test_barriers_do_not_overtake_what_writers_prepared(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.enable_checkpointing(1000).get_checkpoint_config().enable_unaligned_checkpoints()
    env.from_collection([1, 2, 3]).rebalance().sink_to(GlobalSink())
    tasks = tasks_of(create_job_graph(env._generate_stream_graph("job", clear=False)))
    overtaken = {entry.unaligned for task in tasks for entry in task.inputs if "Committer" in task.name}
    assert overtaken == {False}


def test_a_task_is_as_large_at_any_parallelism(program) -> None:
    sizes = set()
    for parallelism in (100, 200):
        program.sink(program.keyed(program.source("in", parallelism=parallelism), parallelism=parallelism))
        job = program.job_graph()
        keyed = next(vertex for vertex in job.vertices if vertex.input_edges and vertex.parallelism == parallelism)
        entry = Deployment(job, 0).task(keyed, 3).inputs[0]
        assert len(entry.channels) == parallelism
        sizes.add(len(pickle.dumps(entry.channels)))
    assert max(sizes) - min(sizes) <= 4, "numbers may take a byte more"


def test_a_range_of_channels_is_a_sequence() -> None:
    channels = ChannelRange(ChannelDescriptor(7, 2, 0, 4, 6), ChannelDescriptor(1, 0, 1, 0, 1), 3)
    assert list(channels) == [(7, 2, 0, 4, 6), (8, 2, 1, 4, 7), (9, 2, 2, 4, 8)]
    assert [channels[place] for place in range(3)] == list(channels)
    assert channels[-1].id == 9
    assert channels[1:] == tuple(channels)[1:]
    with pytest.raises(IndexError):
        channels[3]
    assert pickle.loads(pickle.dumps(channels)) == channels


@pytest.mark.parametrize(
    ("settings", "traits"),
    [
        ({}, execution_traits.PIPELINED),
        ({"execution.exchange": "spark"}, execution_traits.EPOCHS),
        ({"execution.runtime-mode": "BATCH"}, execution_traits.BATCH),
    ],
)
def test_tasks_get_the_traits_of_the_execution(program, settings, traits) -> None:
    program.sink(program.source("in"))
    assert [task.execution for task in Deployment(program.job_graph(**settings), 0).tasks_in(0)] == [traits]
