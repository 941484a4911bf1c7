"""Runs of a job that go on from each other: where from is said, and there is one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from firesteel.cli.main import main
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.config.configuration import Configuration
from firesteel.datastream.executor import execution_context
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.epoch_settings import as_epochs
from firesteel.testing.in_process import InProcessExecutor

ROOT = Path(__file__).parents[3]

PROGRAM = """\
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 4).print()
"""


class _Job:
    def __init__(self, job_graph: JobGraph):
        self.future: Future[Any] = Future()
        self._id = JobID(job_graph.job_id)

    def job_id(self) -> JobID:
        return self._id

    def result_future(self) -> Future[Any]:
        return self.future

    def finish(self) -> None:
        self.future.set_result(JobExecutionResult(self._id, 0))


class RecordingExecutor:
    """Runs nothing; jobs end at once unless ``holds`` them."""

    def __init__(self) -> None:
        self.job_graphs: list[JobGraph] = []
        self.jobs: list[_Job] = []
        self.holds = False

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        assert configuration == job_graph.configuration
        job = _Job(job_graph)
        self.job_graphs.append(job_graph)
        self.jobs.append(job)
        if not self.holds:
            job.finish()
        return JobClient(job)  # type: ignore[arg-type]


@pytest.fixture
def executor() -> Iterator[RecordingExecutor]:
    recording = RecordingExecutor()
    with execution_context(executor=recording):
        yield recording


Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, executor: RecordingExecutor) -> Run:
    program = tmp_path / "program.py"

    def run_program(*options: str, execute: str = "env.execute('nightly')") -> int:
        program.write_text(f"{PROGRAM}{execute}\n")
        return main(["run", *options, str(program)])

    return run_program


def checkpoint(directory: Path, executor: RecordingExecutor, number: int, complete: bool = True) -> Path:
    """What a run of the job that was started last would leave."""
    path = directory / as_epochs(executor.job_graphs[-1]).job_id / f"chk-{number}"
    path.mkdir(parents=True)
    if complete:
        (path / "_metadata").touch()
    return path


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    return "--available-now", "-D", f"execution.checkpointing.dir={tmp_path / 'checkpoints'}"


def test_a_run_says_where_it_goes_on(
    run: Run,
    executor: RecordingExecutor,
    options: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*options) == 0
    assert "'nightly' starts from the beginning: there is no checkpoint in" in capsys.readouterr().err
    directory = tmp_path / "checkpoints"
    checkpoint(directory, executor, 9)
    newest = checkpoint(directory, executor, 10)
    checkpoint(directory, executor, 11, complete=False)
    assert run(*options) == 0
    assert capsys.readouterr().err == f"firesteel: job 'nightly' resumes from {newest}\n"
    assert run(*options, "-s", "/else/where") == 0
    assert capsys.readouterr().err == "firesteel: job 'nightly' starts from /else/where as configured\n"
    assert run(*options, execute="env.execute('another')") == 0
    assert "'another' starts from the beginning" in capsys.readouterr().err


def test_without_a_directory_the_next_run_begins_anew(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--available-now") == 0
    assert "execution.checkpointing.dir is not set" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags", [(), ("-D", "execution.exchange=spark"), ("--available-now", "--mode", "batch")], ids=str
)
def test_other_jobs_are_just_passed_on(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    assert run(*flags, "-D", f"execution.checkpointing.dir={tmp_path}", execute="env.execute()") == 0
    assert capsys.readouterr().err == ""


def test_a_job_without_a_name_is_refused(
    run: Run, executor: RecordingExecutor, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options, execute="env.execute()") == 2
    assert "env.execute('my job')" in capsys.readouterr().err
    assert executor.job_graphs == []
    assert run(*options, "-D", "pipeline.name=named", execute="env.execute()") == 0


def test_one_run_at_a_time(
    run: Run, executor: RecordingExecutor, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    executor.holds = True
    assert run(*options, execute="env.execute_async('nightly')") == 0
    assert run(*options, execute="env.execute_async('nightly')") == 1
    assert "Another run of job 'nightly'" in capsys.readouterr().err
    assert run(*options, execute="env.execute_async('another')") == 0
    for job in executor.jobs:
        job.finish()
    executor.holds = False
    assert run(*options) == 0


def test_a_run_that_could_not_start_does_not_block_the_next(
    run: Run, executor: RecordingExecutor, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(job_graph: JobGraph, configuration: Configuration) -> JobClient:
        raise OSError("no cluster")

    with monkeypatch.context() as patched:
        patched.setattr(executor, "execute", refuse)
        assert run(*options) == 1
    assert run(*options) == 0


ACCOUNTS = f"""\
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from examples import kappa
directory, segments = Path(sys.argv[1]), int(sys.argv[2])
kappa.write_segments(directory / "log", segments - 1, segments)
env = kappa.build(directory, 2, **{{"restart-strategy.type": "none"}})
if "fail" in sys.argv:
    env.from_collection([0]).map(lambda n: 1 / n).print()
env.execute("accounts")
print(kappa.check(directory, segments * kappa.PARTITIONS * kappa.PER_SEGMENT))
"""


def test_runs_that_end_well_and_one_that_fails_give_each_result_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "accounts.py"
    program.write_text(ACCOUNTS)

    def run_next(*arguments: str) -> tuple[int, str, str]:
        code = main(["run", "--available-now", "-n", str(program), str(tmp_path), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    with execution_context(executor=InProcessExecutor()):
        code, out, said = run_next("1")
        assert (code, out) == (0, "1,000 payments: 0 lost, 0 twice, 7 of 7 totals are right\n")
        assert "starts from the beginning" in said
        code, _, said = run_next("2", "fail")
        assert code == 1
        assert "ZeroDivisionError" in said
        code, out, said = run_next("3")
        assert (code, out) == (0, "3,000 payments: 0 lost, 0 twice, 7 of 7 totals are right\n")
        assert "resumes from" in said
