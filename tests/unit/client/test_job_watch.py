"""What is reported of a program's jobs while it waits for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.client import job_watch
from firesteel.client.job_watch import JobWatch
from firesteel.common.job_status import JobStatus
from firesteel.rest.checkpoints import CHECKPOINTS
from firesteel.rest.jobs import JOB, JOB_DIAGNOSIS
from firesteel.testing import eventually


class _Progress:
    def __init__(self, *, shows_figures: bool) -> None:
        self.shows_figures = shows_figures
        self.shown: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.cleared = 0

    def show(self, text: str, figures: str = "") -> None:
        self.shown.append((text, figures))

    def say(self, text: str) -> None:
        self.said.append(text)

    def clear(self) -> None:
        self.cleared += 1


class _Client:
    """A cluster with one job, a source and a sink; the source has given ten times what the sink has taken."""

    leader_url = "http://there:8081"

    def __init__(self) -> None:
        self.records = 0
        self.called: list[object] = []

    def call(self, endpoint: object, path: dict[str, str]) -> Any:
        self.called.append(endpoint)
        assert path == {"jobid": "1"}
        if endpoint is JOB_DIAGNOSIS:
            return SimpleNamespace(slots=2, explanation="2 slots are missing")
        if endpoint is CHECKPOINTS:
            last = SimpleNamespace(id=7, latest_ack_timestamp=60_000)
            return SimpleNamespace(latest=SimpleNamespace(completed=last))
        assert endpoint is JOB
        self.records += 1
        nodes = [SimpleNamespace(id="source", inputs=None), SimpleNamespace(id="sink", inputs=[_named("source")])]
        vertices = [_vertex("source", written=10 * self.records), _vertex("sink", read=self.records)]
        return SimpleNamespace(now=65_000, plan=SimpleNamespace(nodes=nodes), vertices=vertices)


def _named(name: str) -> SimpleNamespace:
    return SimpleNamespace(id=name)


def _vertex(name: str, read: int = 0, written: int = 0) -> SimpleNamespace:
    return SimpleNamespace(id=name, metrics=SimpleNamespace(read_records=read, write_records=written))


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_watch, "_REFRESH_INTERVAL_S", 0.01)


def test_states_are_said_and_figures_shown() -> None:
    progress = _Progress(shows_figures=True)
    with JobWatch(_Client(), progress) as watch:  # type: ignore[arg-type]
        watch.submitted("1", "mine")
        watch.status_changed("1", "mine", JobStatus.RUNNING)
        eventually(lambda: len(progress.shown) > 1)
    assert progress.said == ["job 'mine' was submitted to http://there:8081: 1", "job 'mine' is RUNNING"]
    assert progress.shown[0] == ("job 'mine' is RUNNING", "checkpoint 7 5 s ago")
    assert progress.shown[1][1].startswith("in ")
    assert progress.shown[1][1].endswith("/s, checkpoint 7 5 s ago")
    assert progress.cleared


def test_why_a_job_waits_is_said_once() -> None:
    progress, client = _Progress(shows_figures=False), _Client()
    with JobWatch(client, progress) as watch:  # type: ignore[arg-type]
        watch.status_changed("1", "mine", JobStatus.CREATED)
        eventually(lambda: client.called.count(JOB_DIAGNOSIS) > 2)
        watch.status_changed("1", "mine", JobStatus.RUNNING)
    assert progress.said == ["job 'mine' is CREATED", "job 'mine': 2 slots are missing", "job 'mine' is RUNNING"]
    assert not progress.shown
    assert JOB not in client.called


def test_nothing_is_reported_after_the_end() -> None:
    progress = _Progress(shows_figures=True)
    watch = JobWatch(_Client(), progress)  # type: ignore[arg-type]
    watch.close()
    watch.status_changed("1", "mine", JobStatus.FINISHED)
    assert progress.said == []
