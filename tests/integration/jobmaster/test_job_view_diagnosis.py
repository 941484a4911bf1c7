"""The vertex that slows a job down, from what the tasks say of their time."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.execution_graph import ExecutionGraph
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model import events
from firesteel.jobmaster.restart_strategy import NoRestartStrategy
from firesteel.jobmaster.view.diagnosis import diagnose
from firesteel.jobmaster.view.job import JobView
from firesteel.runtime.model import messages
from firesteel.testing import test_environment


def _master(program: Any) -> JobMaster:
    class Kept:
        def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
            self.job_graph = job_graph

    env = test_environment(2)
    env._executor = kept = Kept()  # type: ignore[assignment]
    program(env)
    env.execute_async("diagnosed")
    return JobMaster(ExecutionGraph(kept.job_graph), NoRestartStrategy())


def _line(env: Any) -> None:
    """source => parse => enrich => sink, all of parallelism 2."""
    stream = env.from_sequence(1, 10).rebalance().map(str).name("parse")
    stream.rebalance().map(str).name("enrich").rebalance().map(str).name("sink").print()


def _fork(env: Any) -> None:
    """source => left and right"""
    stream = env.from_sequence(1, 10)
    stream.rebalance().map(str).name("left").print()
    stream.rebalance().map(str).name("right").print()


def _diagnose(master: JobMaster, status: JobStatus = JobStatus.RUNNING, **times: tuple[float, float]) -> Any:
    """What is said when vertices, named by the beginning of their names, are busy and backpressured so much."""
    for vertex in _view(master).vertices():
        busy, waits = next((value for name, value in times.items() if name in vertex.name), (0.0, 0.0))
        metrics = {
            "busyTimeMsPerSecond": busy,
            "backPressuredTimeMsPerSecond": waits,
            "idleTimeMsPerSecond": 1000 - busy - waits,
        }
        for subtask in range(2):
            # the second has less to do: the busiest subtask counts
            scaled = metrics if subtask == 0 else {name: value / 4 for name, value in metrics.items()}
            scope = (vertex.id, "", subtask)
            master.metrics.report(messages.MetricReport(0, subtask, {scope: scaled}))
    return diagnose(_view(master, status))


def _view(master: JobMaster, status: JobStatus = JobStatus.RUNNING) -> JobView:
    master.handle(events.ClientConsumed(0, "nothing", 0, 0), 0)  # publishes what was reported
    return JobView("id", "diagnosed", 0, status, {}, master.snapshot)


def test_nothing_waits() -> None:
    master = _master(_line)
    assert _diagnose(master) is None
    assert _diagnose(master, Source=(800, 100), parse=(900, 0)) is None, "a tenth of the time is no backpressure"


@pytest.mark.parametrize(
    ("times", "bottleneck", "waiting"),
    [
        ({"Source": (50, 950), "parse": (990, 0)}, "parse", ["Source"]),
        (
            {"Source": (10, 990), "parse": (30, 970), "enrich": (1000, 0), "sink": (300, 0)},
            "enrich",
            ["parse", "Source"],
        ),
        (
            {"Source": (10, 990), "parse": (10, 980), "enrich": (10, 960), "sink": (1000, 0)},
            "sink",
            ["enrich", "parse", "Source"],
        ),
        ({"Source": (600, 90), "parse": (100, 900), "enrich": (1000, 20)}, "enrich", ["parse"]),
        ({"Source": (500, 470), "parse": (900, 0)}, "parse", ["Source"]),
    ],
)
def test_the_neighbour_of_the_last_that_waits(times: Any, bottleneck: str, waiting: list[str]) -> None:
    diagnosis = _diagnose(_master(_line), **times)
    assert bottleneck in diagnosis.vertex.name
    assert [name in vertex.name for name, vertex in zip(waiting, diagnosis.waiting, strict=True)] == [True] * len(
        waiting
    )
    assert diagnosis.explanation.startswith(f"'{diagnosis.vertex.name}' is the bottleneck: it is busy ")
    assert diagnosis.skewed is None
    assert "higher parallelism" in diagnosis.explanation


def test_of_two_consumers_the_busier_one() -> None:
    diagnosis = _diagnose(_master(_fork), Source=(10, 990), left=(200, 0), right=(970, 0))
    assert "right" in diagnosis.vertex.name
    assert diagnosis.load.busy == 970


def test_one_that_is_not_even_busy() -> None:
    diagnosis = _diagnose(_master(_line), Source=(10, 990), parse=(80, 0))
    assert "look at the network" in diagnosis.explanation


@pytest.mark.parametrize("status", [JobStatus.RESTARTING, JobStatus.FINISHED, JobStatus.CREATED])
def test_only_while_the_job_runs(status: JobStatus) -> None:
    assert _diagnose(_master(_line), status, Source=(50, 950), parse=(990, 0)) is None


def test_a_job_without_a_graph() -> None:
    assert diagnose(JobView("id", "none", 0, JobStatus.RUNNING)) is None


def _with_records(*records: int) -> Any:
    master = _master(_line)
    parse = _view(master).vertices()[1]
    for index, number in enumerate(records):
        master.metrics.report(messages.MetricReport(0, index, {(parse.id, "", index): {"numRecordsIn": number}}))
    return _diagnose(master, Source=(50, 950), parse=(990, 0))


@pytest.mark.parametrize("records", [(10, 0), (5_000, 6_000), (2_900, 1_000), (0, 0)])
def test_records_that_are_spread_or_few(records: tuple[int, int]) -> None:
    assert _with_records(*records).skewed is None


def test_one_subtask_that_gets_nearly_everything() -> None:
    diagnosis = _with_records(1_000, 9_000)
    assert (diagnosis.skewed.subtask, diagnosis.skewed.records) == (1, 9_000)
    assert (diagnosis.skewed.share, diagnosis.skewed.skew) == (0.9, 80.0)
    assert "subtask 1 received 90% of all records" in diagnosis.explanation
