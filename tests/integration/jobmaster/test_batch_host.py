"""The host of batch jobs with a real JobMaster and a runner that runs nothing: it answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from firesteel.common import Configuration, JobStatus
from firesteel.common.errors import (
    CheckpointError,
    InvalidProgramError,
    JobCancelledError,
    JobExecutionError,
    TaskFailure,
)
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.execution.batch.host import MAX_RETRIES, BatchHost
from firesteel.execution.stages.stage_runner import StageError, StageMessage
from firesteel.execution.stages.task_commands import BatchCommand, BatchReport
from firesteel.graph.execution_graph import ExecutionState
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.events import MessageReceived
from firesteel.jobmaster.shell.job_preparation import prepare_job
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.process import fault_points
from firesteel.runtime.model.messages import TaskKey, TaskStateChanged
from firesteel.runtime.model.serialization import serialize_records
from firesteel.spi.sink import Committer, Sink, SinkWriter
from firesteel.spi.source import Boundedness, Source, SplitEnumerator

DEADLINE_S = 60
Commands = Mapping[TaskKey, BatchCommand]
Answer = Callable[[Commands], Sequence[StageMessage]]

committed: list[tuple[str, list[Any]]] = []
"""What committers were told, and how; they run in this process."""


class FakeRunner:
    """Answers one run after the other as the test says; the last answer is given again."""

    def __init__(self, *answers: Answer | Exception):
        self.answers = list(answers)
        self.runs: list[Commands] = []
        self.cancelled = threading.Event()
        self.closed = False
        self.on_task_state: Callable[[TaskKey, str], None] | None = None

    def run_batch(self, job_graph: JobGraph, commands: Commands) -> Sequence[StageMessage]:
        self.runs.append(commands)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(commands)

    def run_epoch(self, job_graph: JobGraph, epoch: Any) -> Sequence[StageMessage]:
        raise AssertionError("a batch has no epochs")

    def cancel(self, reason: str) -> None:
        self.cancelled.set()

    def close(self, on_closed: Any = None) -> None:
        self.closed = True


class Writer(SinkWriter[Any]):
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        raise AssertionError("nothing is run")


class Commits(Committer[Any]):
    def commit(self, committables: Sequence[Any]) -> None:
        committed.append(("commit", list(committables)))

    def recommit(self, committables: Sequence[Any]) -> None:
        committed.append(("recommit", list(committables)))


class CommittingSink(Sink):
    def create_writer(self, context: Any) -> SinkWriter[Any]:
        return Writer()

    def create_committer(self) -> Committer[Any]:
        return Commits()


@pytest.fixture(autouse=True)
def _nothing_committed() -> None:
    committed.clear()


def all_well(commands: Commands) -> list[StageMessage]:
    return [BatchReport(*key) for key in commands]


def failed(key: TaskKey, message: str) -> StageError:
    failure = TaskFailure(message, "ValueError", operator="Map", user_file="job.py", user_line=7)
    return StageError("a task failed", [TaskStateChanged(0, *key, "FAILED", failure)])


RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "2",
    "restart-strategy.fixed-delay.delay": "10 ms",
}


def environment(parallelism: int = 1, settings: Mapping[str, str] | None = None) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in (settings or {}).items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    return env.set_runtime_mode(RuntimeExecutionMode.BATCH)


def job_of(env: StreamExecutionEnvironment) -> JobGraph:
    """The job that the environment's program would run."""
    graphs: list[JobGraph] = []

    class Capture:
        def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
            graphs.append(job_graph)

    env._executor = Capture()
    env.execute_async("batch")
    return graphs[0]


def start(env: StreamExecutionEnvironment, runner: FakeRunner, **host_settings: Any) -> JobMasterRunner:
    job = JobMasterRunner(
        prepare_job(job_of(env), single_host=True),
        BatchHost(runner, **host_settings),
    )
    job.start()
    return job


def run(env: StreamExecutionEnvironment, runner: FakeRunner, **host_settings: Any) -> Any:
    return start(env, runner, **host_settings).result_future().result(DEADLINE_S)


def numbers_to(
    sink: Sink, parallelism: int = 1, settings: Mapping[str, str] | None = None
) -> StreamExecutionEnvironment:
    env = environment(parallelism, settings)
    env.from_sequence(1, 4).map(str).rebalance().map(str).sink_to(sink)
    return env


def states_of(job: JobMasterRunner) -> list[ExecutionState]:
    return [vertex.state for vertex in job._master.execution_graph.vertices()]


def test_splits_are_collected_before_the_stages_run() -> None:
    runner = FakeRunner(all_well)
    run(numbers_to(CommittingSink(), parallelism=2), runner)
    (commands,) = runner.runs
    sources = [command for command in commands.values() if not command.descriptor.input_edges]
    assert len(sources) == 2
    assert all(len(command.splits) == 1 for command in sources)
    assert len({command.splits[0].split_id for command in sources}) == 2
    assert all(command.descriptor.task.execution.one_key_at_a_time for command in commands.values())
    assert runner.closed


def test_all_tasks_finish_and_upstream_ones_first() -> None:
    env = numbers_to(CommittingSink())
    runner = FakeRunner(all_well)
    job = JobMasterRunner(prepare_job(job_of(env), single_host=True), BatchHost(runner))
    told = watch(job)
    job.start()
    job.result_future().result(DEADLINE_S)
    assert set(states_of(job)) == {ExecutionState.FINISHED}
    first, last = (vertex.id for vertex in job.job_graph.vertices)
    states = [(message.vertex_id, message.state) for message in told if isinstance(message, TaskStateChanged)]
    assert states == [(vertex, state) for vertex in (first, last) for state in ("INITIALIZING", "RUNNING", "FINISHED")]


def watch(job: JobMasterRunner) -> list[Any]:
    """Everything that slots say from now on."""
    told: list[Any] = []
    put = job._events.put

    def listen(event: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(event, MessageReceived):
            told.append(event.message)
        put(event, *args, **kwargs)

    job._events.put = listen  # type: ignore[assignment, method-assign]
    return told


def test_a_runner_that_tells_how_far_it_is() -> None:
    """A stage that others read has finished when the runner says so, the last one when it is committed."""
    seen: list[list[ExecutionState]] = []
    started: Future[JobMasterRunner] = Future()

    def answer(commands: Commands) -> list[StageMessage]:
        job = started.result(DEADLINE_S)
        first, last = commands
        for key, state in ((first, "FINISHED"), (last, "RUNNING"), (last, "FINISHED"), (first, "RUNNING")):
            assert runner.on_task_state is not None
            runner.on_task_state(key, state)
        job._events.join()
        seen.append(states_of(job))
        return all_well(commands)

    runner = FakeRunner(answer)
    job = start(numbers_to(CommittingSink()), runner)
    started.set_result(job)
    job.result_future().result(DEADLINE_S)
    assert seen == [[ExecutionState.FINISHED, ExecutionState.RUNNING]]
    assert set(states_of(job)) == {ExecutionState.FINISHED}


def test_committables_of_all_subtasks_are_committed_at_once() -> None:
    def answer(commands: Commands) -> list[StageMessage]:
        last = next(key for key, command in commands.items() if not command.descriptor.output_edges)[0]
        operator = commands[last, 0].descriptor.task.operators[-1].operator_id
        return [BatchReport(last, subtask, committables={operator: [f"part {subtask}"]}) for subtask in range(2)]

    run(numbers_to(CommittingSink(), parallelism=2), FakeRunner(answer))
    assert committed == [("commit", ["part 0", "part 1"])]


def prepared(commands: Commands) -> list[StageMessage]:
    key, command = list(commands.items())[-1]
    return [BatchReport(*key, committables={command.descriptor.task.operators[-1].operator_id: ["part"]})]


def test_a_commit_that_fails_is_tried_again_without_running_the_stages() -> None:
    fault_points.arm("sink.commit=raise")
    try:
        runner = FakeRunner(prepared)
        env = numbers_to(CommittingSink(), settings=RESTARTS)
        job = start(env, runner)
        with pytest.raises(JobExecutionError) as caught:
            job.result_future().result(DEADLINE_S)
    finally:
        fault_points.arm("")
    assert caught.value.failure.message == "fault injected at sink.commit"
    assert caught.value.failure.operator is not None
    assert job._master.attempt == 2
    assert len(runner.runs) == 1
    assert committed == []


def test_a_commit_whose_end_nobody_saw_is_committed_again(tmp_path: Any) -> None:
    once = tmp_path / "once"
    once.touch()
    fault_points.arm(f"sink.committed=raise@{once}")
    try:
        runner = FakeRunner(prepared)
        env = numbers_to(CommittingSink(), settings=RESTARTS)
        run(env, runner)
    finally:
        fault_points.arm("")
    assert committed == [("commit", ["part"]), ("recommit", ["part"])]
    assert len(runner.runs) == 1


def test_what_tasks_collected_accumulated_and_measured_arrives() -> None:
    def answer(commands: Commands) -> list[StageMessage]:
        reports: list[StageMessage] = []
        for vertex_id, subtask in commands:
            is_last = not commands[vertex_id, subtask].descriptor.output_edges
            payloads = [("results", serialize_records([subtask * 10 + n], None)) for n in range(2)]
            reports.append(
                BatchReport(
                    vertex_id,
                    subtask,
                    accumulators={"lines": 1},
                    metrics={"": {"numRecordsIn": 5}},
                    client_payloads=tuple(payloads) if is_last else (),
                )
            )
        return reports

    job = start(numbers_to(CollectSink("results"), parallelism=2), FakeRunner(answer))
    assert sorted(job.collect_iterator("results")) == [0, 1, 10, 11]
    result = job.result_future().result(DEADLINE_S)
    assert result.get_accumulator_result("lines") == 4
    assert [values["numRecordsIn"] for values in job.metrics().values()] == [5] * 4


def test_what_functions_printed_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(commands: Commands) -> list[StageMessage]:
        printed = (("stdout", "one "), ("stdout", "line\nanother\n"), ("stderr", "a warning"), ("stdout", "the end\n"))
        return [BatchReport(*key, printed=printed) for key in list(commands)[:1]]

    run(numbers_to(CommittingSink()), FakeRunner(answer))
    captured = capsys.readouterr()
    assert captured.out == "one line\nanother\nthe end\n"
    assert captured.err == "a warning\n"


def test_a_task_that_fails_tells_why() -> None:
    runner = FakeRunner(lambda commands: (_ for _ in ()).throw(failed(list(commands)[-1], "not a number")))
    job = start(numbers_to(CommittingSink()), runner)
    with pytest.raises(JobExecutionError) as caught:
        job.result_future().result(DEADLINE_S)
    assert caught.value.failure.message == "not a number"
    assert caught.value.failure.user_line == 7
    assert len(runner.runs) == 1
    assert states_of(job) == [ExecutionState.CANCELED, ExecutionState.FAILED]


def test_a_task_that_had_finished_and_then_fails_tells_why() -> None:
    """A stage whose output was lost runs again; this time its function raises."""

    def answer(commands: Commands) -> list[StageMessage]:
        first = next(iter(commands))
        assert runner.on_task_state is not None
        runner.on_task_state(first, "FINISHED")
        raise failed(first, "not this time")

    runner = FakeRunner(answer)
    with pytest.raises(JobExecutionError) as caught:
        run(numbers_to(CommittingSink()), runner)
    assert caught.value.failure.message == "not this time"


def test_the_restart_strategy_decides_after_a_failure_of_a_task() -> None:
    attempts: list[int] = []

    def answer(commands: Commands) -> list[StageMessage]:
        attempts.append(next(iter(commands.values())).descriptor.task.attempt)
        if len(attempts) < 3:
            raise failed(next(iter(commands)), "again")
        return all_well(commands)

    env = numbers_to(CommittingSink(), settings=RESTARTS)
    env.get_config()
    env._configuration.set_string("restart-strategy.fixed-delay.attempts", "2")
    run(env, FakeRunner(answer))
    assert attempts == [0, 1, 2]


def test_a_lost_worker_is_no_failure_of_the_job() -> None:
    lost = StageError("executor lost")
    runner = FakeRunner(*[lost] * MAX_RETRIES, all_well)
    job = start(numbers_to(CommittingSink()), runner)
    job.result_future().result(DEADLINE_S)
    assert len(runner.runs) == MAX_RETRIES + 1
    assert job._master.attempt == 0


def test_workers_that_are_lost_again_and_again_are() -> None:
    runner = FakeRunner(StageError("executor lost"))
    with pytest.raises(JobExecutionError) as caught:
        run(numbers_to(CommittingSink()), runner)
    assert caught.value.failure.message == "executor lost"
    assert len(runner.runs) == MAX_RETRIES + 1


def test_an_error_of_the_runner_itself_is_told() -> None:
    with pytest.raises(JobExecutionError) as caught:
        run(numbers_to(CommittingSink()), FakeRunner(RuntimeError("no context")))
    assert caught.value.failure.error_type == "RuntimeError"


def test_cancelling_ends_the_run() -> None:
    begun = threading.Event()

    def answer(commands: Commands) -> list[StageMessage]:
        begun.set()
        assert runner.cancelled.wait(DEADLINE_S)
        raise StageError("cancelled")

    runner = FakeRunner(answer)
    job = start(numbers_to(CommittingSink()), runner)
    assert begun.wait(DEADLINE_S)
    job.cancel().result(DEADLINE_S)
    with pytest.raises(JobCancelledError):
        job.result_future().result(DEADLINE_S)
    assert job.status() is JobStatus.CANCELED
    assert len(runner.runs) == 1
    assert set(states_of(job)) == {ExecutionState.CANCELED}


def test_a_runner_that_misses_the_cancellation_is_told_again() -> None:
    begun = threading.Event()

    def answer(commands: Commands) -> list[StageMessage]:
        begun.set()
        assert runner.cancelled.wait(DEADLINE_S)
        runner.cancelled.clear()  # as if the run had begun a moment later
        assert runner.cancelled.wait(DEADLINE_S)
        raise StageError("cancelled")

    runner = FakeRunner(answer)
    job = start(numbers_to(CommittingSink()), runner)
    assert begun.wait(DEADLINE_S)
    job.cancel().result(DEADLINE_S)
    assert job.status() is JobStatus.CANCELED


class Silent(SplitEnumerator[Any]):
    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Says nothing."""

    def add_splits_back(self, splits: list[Any], subtask: int) -> None:
        raise AssertionError("nothing was read")


class SilentSource(Source[Any]):
    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: Any) -> SplitEnumerator[Any]:
        return Silent()

    def create_reader(self, context: Any) -> Any:
        raise AssertionError("nothing is run")


class RowsSource(SilentSource):
    reads_rows = True


def test_a_source_that_never_says_which_split_is_the_last() -> None:
    env = environment(2)
    env.from_source(SilentSource(), WatermarkStrategy.no_watermarks(), "sensors").sink_to(CommittingSink())
    runner = FakeRunner(all_well)
    with pytest.raises(JobExecutionError) as caught:
        run(env, runner, splits_timeout_s=0.05)
    assert "'Source: sensors' (readers 0, 1)" in caught.value.failure.message
    assert "signal_no_more_splits" in (caught.value.failure.hint or "")
    assert runner.runs == []


def test_a_source_whose_rows_come_from_elsewhere_is_not_asked() -> None:
    env = environment()
    env.from_source(RowsSource(), WatermarkStrategy.no_watermarks(), "frame").sink_to(CommittingSink())
    runner = FakeRunner(all_well)
    run(env, runner)
    assert [command.splits for command in runner.runs[0].values()] == [()]


def test_checkpoints_are_off() -> None:
    env = numbers_to(CommittingSink(), settings={"execution.checkpointing.interval": "10 ms"})
    job = prepare_job(job_of(env), single_host=True)
    assert job.settings.interval is None
    assert job.storage is None
    run(numbers_to(CommittingSink(), settings={"execution.checkpointing.interval": "10 ms"}), FakeRunner(all_well))


def test_a_savepoint_to_start_from_is_refused(tmp_path: Any) -> None:
    env = numbers_to(CommittingSink(), settings={"execution.state-recovery.path": str(tmp_path)})
    with pytest.raises(InvalidProgramError, match="runs as a batch"):
        prepare_job(job_of(env), single_host=True)


def test_a_savepoint_is_refused() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def answer(commands: Commands) -> list[StageMessage]:
        begun.set()
        assert go_on.wait(DEADLINE_S)
        return all_well(commands)

    job = start(numbers_to(CommittingSink()), FakeRunner(answer))
    try:
        assert begun.wait(DEADLINE_S)
        for request in (job.trigger_savepoint("/nowhere"), job.trigger_checkpoint()):
            with pytest.raises(CheckpointError, match="runs as a batch"):
                request.result(DEADLINE_S)
        with pytest.raises(CheckpointError, match="runs as a batch"):
            job.stop_with_savepoint(False, "/nowhere").result(DEADLINE_S)
    finally:
        go_on.set()
    job.result_future().result(DEADLINE_S)
