"""Operators that had finished are not run again, whatever they are chained to now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firesteel.common.errors import StateIncompatibleError
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.jobmaster.checkpoints.finished_operators import separate_finished
from firesteel.jobmaster.checkpoints.state_assignment import assign_state, check_compatibility
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.state_handles import OperatorSubtaskState


def _job(parallelism: int, *, source: int | None = 1, chains: bool = True) -> JobGraph:
    """``ended -> first -> second -> last``, united with ``endless`` before ``last``; only some have a uid."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    if not chains:
        env.disable_operator_chaining()
    ended = env.from_collection([1]).name("ended").uid("ended")
    if source is not None:
        ended.set_parallelism(source)
    second = ended.map(str).name("first").map(str).name("second").uid("second")
    second.sink_to(CollectSink("side")).name("side")
    endless = env.from_collection(["a"]).name("endless").uid("endless")
    second.union(endless).sink_to(CollectSink("last")).name("last").uid("last")
    return create_job_graph(env._generate_stream_graph("job", clear=True))


def _checkpoint(job: JobGraph, finished: set[str]) -> CheckpointMetadata:
    def state(node: Any) -> OperatorState:
        subtasks = range(node.parallelism)
        all_of_them = frozenset(subtasks) if node.name.split(": ")[-1] in finished else frozenset()
        running = {} if all_of_them else {subtask: OperatorSubtaskState() for subtask in subtasks}
        return OperatorState(
            node.operator_id,
            node.uid,
            node.name,
            node.parallelism,
            node.max_parallelism,
            running,
            finished=all_of_them,
        )

    operators = tuple(map(state, job.nodes()))
    return CheckpointMetadata(
        checkpoint_id=7, job_id="job", job_name="job", timestamp=0, kind=SnapshotKind.SAVEPOINT, operators=operators
    )


def _restored(job: JobGraph, checkpoint: CheckpointMetadata) -> dict[str, bool]:
    """The vertices of the job as it runs, and whether they have finished."""
    job = separate_finished(job, checkpoint)
    assigned = assign_state(checkpoint, job, allow_non_restored=False, reusable=False)
    assert [edge.id for edge in job.edges] == list(range(len(job.edges)))
    for vertex in job.vertices:
        assert all(edge in job.edges and edge.target_vertex == vertex.id for edge in vertex.input_edges)
        assert all(edge in job.edges and edge.source_vertex == vertex.id for edge in vertex.output_edges)
        assert vertex.is_source or vertex.input_edges
    return {vertex.name: assigned[vertex.id, 0].finished for vertex in job.vertices}


def test_a_source_that_was_apart_from_its_chain_stays_finished() -> None:
    checkpoint = _checkpoint(_job(2), {"ended"})
    with pytest.raises(StateIncompatibleError, match="one task cannot do both"):
        check_compatibility(checkpoint, _job(1), False)
    assert _restored(_job(1), checkpoint) == {
        "Source: ended": True,
        "first -> second -> Sink: side": False,
        "Source: endless": False,
        "Sink: last": False,
    }


def test_operators_whose_ids_depend_on_their_chain_stay_finished_between_finished_ones() -> None:
    old, new = _job(1, chains=False), _job(1)
    ids = [{node.name: node.operator_id for node in job.nodes()} for job in (old, new)]
    assert ids[0]["first"] != ids[1]["first"]
    restored = _restored(new, _checkpoint(old, {"ended", "first", "second", "side"}))
    assert restored == {
        "Source: ended -> first -> second -> Sink: side": True,
        "Source: endless": False,
        "Sink: last": False,
    }


def test_a_new_source_before_finished_operators_is_read() -> None:
    job = _job(1)
    checkpoint = _checkpoint(job, {"ended", "first", "second", "side", "endless", "last"})
    known = tuple(state for state in checkpoint.operators if state.name != "Source: endless")
    restored = _restored(job, replace(checkpoint, operators=known))
    assert restored == {
        "Source: ended -> first -> second -> Sink: side": True,
        "Source: endless": False,
        "Sink: last": False,
    }


def test_a_job_whose_chains_have_finished_as_a_whole_stays_as_it_is() -> None:
    job = _job(2, source=None)
    assert separate_finished(job, _checkpoint(job, {"ended", "first", "second", "side"})) is job
    assert separate_finished(job, _checkpoint(job, set())) is job
