"""What tasks are told with an epoch, and what is told of them afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.errors import InvalidProgramError
from firesteel.common.job_status import JobStatus
from firesteel.execution.epochs.messages import EpochMessages, EpochResult
from firesteel.execution.epochs.tasks import EpochTasks
from firesteel.execution.stages.stage_graph import stage_descriptors
from firesteel.execution.stages.task_commands import EpochReport
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.epoch_settings import (
    EpochSettings,
    EpochTriggerKind,
    as_epochs,
    epoch_checkpoint_settings,
)
from firesteel.jobmaster.restart_strategy import create_restart_strategy
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind
from firesteel.runtime.model.messages import (
    AcknowledgeCheckpoint,
    AddSplits,
    AlignWatermark,
    ClientAck,
    ClientPayload,
    MetricReport,
    NoMoreSplits,
    NotifyCheckpointComplete,
    RequestSplit,
    TaskAwaitsCheckpoint,
    TaskStateChanged,
    TriggerCheckpoint,
)
from firesteel.runtime.model.state_handles import (
    UNION,
    InlineBytes,
    OperatorStateHandle,
    OperatorSubtaskState,
    TaskStateSnapshot,
)
from tests.support.epochs.scripted import ScriptedJob


@pytest.fixture(scope="module")
def job_graph() -> JobGraph:
    job = ScriptedJob(parallelism=2)
    job.job.discard()
    job.runner._checkpoint_io.close()
    return job.job.job_graph


@pytest.fixture
def tasks(job_graph: JobGraph) -> EpochTasks:
    return EpochTasks(job_graph, stage_descriptors(job_graph, 0))


def trigger(number: int, kind: SnapshotKind = SnapshotKind.CHECKPOINT) -> TriggerCheckpoint:
    return TriggerCheckpoint(number, 0, CheckpointOptions(kind, CheckpointLocation(f"/c/chk-{number}", "/c")), ())


def reader(tasks: EpochTasks) -> tuple[tuple[str, int], str]:
    return next(iter(tasks.sources.items()))


def said(tasks: EpochTasks, task: tuple[str, int], place: int = 0) -> list[str]:
    epoch = tasks.planned[place]
    return [type(message).__name__ for message in tasks.commands(epoch, 1, 1)[task].messages]


class TestWhatTasksAreTold:
    def test_what_is_said_after_the_trigger_is_for_the_next_epoch(self, tasks: EpochTasks) -> None:
        task, operator_id = reader(tasks)
        assert tasks.tell([], AddSplits(operator_id, 0, ("a",))) == task
        assert tasks.plan(trigger(1))
        tasks.tell([], AddSplits(operator_id, 0, ("b",)))
        assert not tasks.plan(trigger(1)), "the next slot hears of it"
        tasks.tell([], NoMoreSplits(operator_id, 0))
        assert tasks.plan(trigger(2))
        assert said(tasks, task, 0) == ["AddSplits", "TriggerCheckpoint"]
        assert said(tasks, task, 1) == ["AddSplits", "NoMoreSplits", "TriggerCheckpoint"]

    def test_a_slot_that_hears_of_a_trigger_late_does_not_begin_the_epoch_again(self, tasks: EpochTasks) -> None:
        tasks.plan(trigger(1))
        tasks.planned.pop()
        assert not tasks.plan(trigger(1))
        assert not tasks.planned

    def test_of_an_epoch_that_is_not_to_be_nothing_is_lost(self, tasks: EpochTasks) -> None:
        task, operator_id = reader(tasks)
        tasks.tell([], AddSplits(operator_id, 0, ("a",)))
        tasks.plan(trigger(1))
        tasks.tell([], NoMoreSplits(operator_id, 0))
        tasks.drop(1)
        assert tasks.with_work() == [task]
        tasks.plan(trigger(2))
        assert said(tasks, task) == ["AddSplits", "NoMoreSplits", "TriggerCheckpoint"]

    def test_nor_if_another_one_waits_behind_it(self, tasks: EpochTasks) -> None:
        task, operator_id = reader(tasks)
        tasks.tell([], AddSplits(operator_id, 0, ("a",)))
        tasks.plan(trigger(1))
        tasks.plan(trigger(2, SnapshotKind.SAVEPOINT))
        tasks.drop(1)
        assert said(tasks, task) == ["AddSplits", "TriggerCheckpoint"]

    def test_how_far_a_reader_may_go_is_said_each_time_and_is_news_only_when_it_changes(
        self, tasks: EpochTasks
    ) -> None:
        task, operator_id = reader(tasks)
        assert tasks.tell([], AlignWatermark(operator_id, 0, 100)) == task
        tasks.plan(trigger(1))
        assert said(tasks, task) == ["AlignWatermark", "TriggerCheckpoint"]
        assert tasks.tell([], AlignWatermark(operator_id, 0, 100)) is None
        assert tasks.with_work() == []
        assert tasks.tell([], AlignWatermark(operator_id, 0, 200)) == task
        tasks.plan(trigger(2))
        tasks.plan(trigger(3))
        assert said(tasks, task, 2) == ["AlignWatermark", "TriggerCheckpoint"]

    def test_what_the_client_took_and_what_completed_is_nothing_to_do(self, tasks: EpochTasks) -> None:
        task, _ = reader(tasks)
        assert tasks.tell([task], ClientAck("c", 0, 1)) is None
        assert tasks.tell([task], NotifyCheckpointComplete(1)) is None
        tasks.plan(trigger(2))
        assert said(tasks, task) == ["NotifyCheckpointComplete", "TriggerCheckpoint"]

    def test_a_task_that_has_finished_takes_no_snapshot(self, tasks: EpochTasks) -> None:
        task, _ = reader(tasks)
        tasks.plan(trigger(1))
        tasks.finished.add(task)
        tasks.plan(trigger(2))
        assert said(tasks, task, 0) == ["TriggerCheckpoint"], "it was triggered before"
        assert said(tasks, task, 1) == []

    def test_union_lists_go_to_every_subtask_that_is_loaded(self, tasks: EpochTasks, job_graph: JobGraph) -> None:
        vertex = job_graph.vertices[1]
        operator_id = vertex.head.node.operator_id
        tasks.plan(trigger(1))
        epoch = tasks.planned.pop()
        for task in tasks.descriptors:
            handle = OperatorStateHandle("u", UNION, 1, InlineBytes(str(task[1]).encode()))
            state = {operator_id: OperatorSubtaskState(operator=(handle,))} if task[0] == vertex.id else {}
            epoch.states[task] = TaskStateSnapshot(state)
        tasks.ran(epoch)
        tasks.completed(epoch)
        tasks.plan(trigger(2))
        restore = tasks.commands(tasks.planned[0], 1, 1)[vertex.id, 1].restore
        assert restore is not None
        assert [part.handle.data for part in restore.operators[operator_id].operator] == [
            InlineBytes(b"0"),
            InlineBytes(b"1"),
        ]


class TestTimeAtRecords:
    def records_ms(self, *reports: tuple[str, int, str, tuple[float, float] | None]) -> float:
        told = [EpochReport(vertex, subtask, 1, host=host, at_records=span) for vertex, subtask, host, span in reports]
        return EpochResult.of(1, told, ()).records_ms

    def test_without_records_there_is_none(self) -> None:
        assert self.records_ms(("source", 0, "a", None), ("sink", 0, "a", None)) == 0

    def test_vertices_follow_one_another(self) -> None:
        assert self.records_ms(("source", 0, "a", (1, 2)), ("sink", 0, "a", (5, 7))) == pytest.approx(3000)

    def test_subtasks_on_a_host_run_at_once_or_one_after_the_other(self) -> None:
        spans = (10, 12), (11, 14), (11.5, 12), (20, 21)
        reports = [("source", subtask, "a", span) for subtask, span in enumerate(spans)]
        assert self.records_ms(*reports) == pytest.approx(5000)
        assert self.records_ms(*reversed(reports)) == pytest.approx(5000)

    def test_the_clocks_of_hosts_have_nothing_in_common(self) -> None:
        spans = ("a", (0, 2)), ("b", (1000, 1003)), ("b", (1001, 1004))
        assert self.records_ms(*(("source", n, *span) for n, span in enumerate(spans))) == pytest.approx(4000)


class TestWhatTasksTell:
    def events(self, messages: EpochMessages, tasks: EpochTasks, number: int, told: list[Any]) -> list[Any]:
        result = EpochResult.of(number, told, tasks.sources)
        return messages.events(result, lambda requests: list(requests), {})

    def test_acknowledgements_come_last_and_states_not_at_all(self, tasks: EpochTasks, job_graph: JobGraph) -> None:
        task, operator_id = reader(tasks)
        told = [
            AcknowledgeCheckpoint(0, 1, *task, TaskStateSnapshot(), CheckpointMetrics()),
            TaskStateChanged(0, *task, "FINISHED"),
            TaskAwaitsCheckpoint(0, *task),
            RequestSplit(0, task[0], operator_id, 1),
            EpochReport(*task, 1),
        ]
        events = self.events(EpochMessages(job_graph, 0), tasks, 1, told)
        assert [type(event.message) for event in events] == [RequestSplit, AcknowledgeCheckpoint]
        assert [event.slot_index for event in events] == [1, 0]

    def test_the_client_gets_numbers_without_gaps_whatever_workers_count(
        self, tasks: EpochTasks, job_graph: JobGraph
    ) -> None:
        messages = EpochMessages(job_graph, 0)
        channel = f"results#{job_graph.vertices[1].operators[-1].node.operator_id}"
        first = self.events(messages, tasks, 4, [ClientPayload(0, channel, 1, n, b"") for n in (0, 1)])
        again = self.events(messages, tasks, 5, [ClientPayload(0, channel, 1, 0, b"", last_checkpoint_id=0)])
        assert [(e.slot_index, e.message.sequence, e.message.last_checkpoint_id) for e in first + again] == [
            (1, 0, 3),
            (1, 1, 3),
            (1, 2, 4),
        ]

    def test_accumulators_of_tasks_that_share_a_slot_survive_a_reload(
        self, tasks: EpochTasks, job_graph: JobGraph
    ) -> None:
        messages = EpochMessages(job_graph, 0)
        keys = [(vertex.id, 0) for vertex in job_graph.vertices]

        def report(counts: list[int], reloaded: bool) -> Any:
            told: list[Any] = []
            for (vertex, subtask), count in zip(keys, counts, strict=True):
                accumulators = {(vertex, subtask): {"seen": count}}
                told.append(MetricReport(0, 0, {(vertex, "", subtask): {"numRecordsIn": count}}, accumulators))
                told.append(EpochReport(vertex, subtask, 1, reloaded=reloaded))
            (event,) = self.events(messages, tasks, 1, told)
            return event.message

        def seen(*counts: int) -> Any:
            return {key: {"seen": count} for key, count in zip(keys, counts, strict=True)}

        assert report([3, 4], reloaded=True).accumulators == seen(3, 4)
        assert report([5, 4], reloaded=False).accumulators == seen(5, 4)
        told = report([1, 1], reloaded=True)
        assert told.accumulators == messages.accumulators() == seen(6, 5)
        assert told.metrics[keys[0][0], "", 0] == {"numRecordsIn": 1}


class TestSettings:
    def configured(self, **settings: str) -> Configuration:
        configuration = Configuration()
        for key, value in settings.items():
            configuration.set_string("execution." + key.replace("__", ".").replace("_", "-"), value)
        return configuration

    def test_checkpoints_are_on_aligned_and_one_at_a_time(self, job_graph: JobGraph) -> None:
        configuration = self.configured(
            checkpointing__unaligned__enabled="true",
            checkpointing__max_concurrent_checkpoints="1",
            checkpointing__min_pause="5 s",
            checkpointing__checkpoints_after_tasks_finish="false",
        )
        graph = as_epochs(replace(job_graph, configuration=configuration))
        settings = epoch_checkpoint_settings(graph.configuration)
        assert settings.interval is not None
        assert settings.period is None, "the host says when"
        assert (settings.unaligned, settings.min_pause, settings.max_concurrent) == (False, 0, 1)
        assert settings.after_tasks_finish
        assert settings.exactly_once
        assert graph.job_id == job_graph.job_id
        assert not settings.keeps(JobStatus.FINISHED)

    def test_a_job_that_is_to_be_resumed_has_an_id_of_its_name(self, job_graph: JobGraph) -> None:
        configuration = self.configured(epoch__trigger="available-now", checkpointing__dir="/tmp/checkpoints")
        graphs = [
            as_epochs(replace(job_graph, configuration=configuration, job_id=id, job_name=name))
            for id, name in (("1", "a"), ("2", "a"), ("3", "b"))
        ]
        assert graphs[0].job_id == graphs[1].job_id != graphs[2].job_id
        assert epoch_checkpoint_settings(configuration).keeps(JobStatus.FINISHED)

    def test_a_run_that_is_to_end_is_not_restarted_for_ever(self, job_graph: JobGraph) -> None:
        def restarts(**settings: str) -> str:
            configuration = self.configured(**settings)
            for key, value in (("type", settings.get("strategy")), ("fixed-delay.attempts", settings.get("attempts"))):
                if value is not None:
                    configuration.set_string(f"restart-strategy.{key}", value)
            return create_restart_strategy(
                as_epochs(replace(job_graph, configuration=configuration)).configuration
            ).describe()

        assert restarts(epoch__trigger="available-now") == "fixed delay: 3 restarts, 1000 ms apart"
        assert restarts(epoch__trigger="available-now", attempts="7") == "fixed delay: 7 restarts, 1000 ms apart"
        assert restarts(epoch__trigger="available-now", strategy="none") == "no restart"
        assert "any number of restarts" in restarts(epoch__trigger="continuous")

    def test_without_a_directory_there_is_nothing_to_resume(self) -> None:
        assert not EpochSettings.from_configuration(self.configured(epoch__trigger="available-now")).resumes

    def test_an_epoch_of_the_interval_trigger_may_last_as_long_as_the_interval(self) -> None:
        settings = EpochSettings.from_configuration(self.configured(epoch__trigger="interval", epoch__interval="9 s"))
        assert (settings.trigger, settings.target_duration) == (EpochTriggerKind.INTERVAL, 9000)
        chosen = self.configured(
            epoch__trigger="interval", epoch__interval="9 s", epoch__target_duration="2 s", epoch__max_records="5"
        )
        settings = EpochSettings.from_configuration(chosen)
        assert (settings.target_duration, settings.max_records) == (2000, 5)

    @pytest.mark.parametrize("option", ["interval", "target-duration", "idle-interval", "max-records"])
    def test_nothing_may_be_zero(self, option: str) -> None:
        value = "0" if option == "max-records" else "0 ms"
        with pytest.raises(InvalidProgramError, match=option):
            EpochSettings.from_configuration(self.configured(**{f"epoch__{option.replace('-', '_')}": value}))
