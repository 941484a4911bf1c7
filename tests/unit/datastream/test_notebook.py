"""What a notebook shows of streams, results and jobs."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from firesteel.common import Configuration, JobClient, JobExecutionResult, JobStatus, Types
from firesteel.common.job_id import JobID
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import test_environment

JOB_ID = JobID("0123456789abcdef0123456789abcdef")


class Handle:
    web_url = f"http://host:8081/#/jobs/{JOB_ID}"

    def __init__(self, answer: Any):
        self._answer = answer

    def job_id(self) -> JobID:
        return JOB_ID

    def status(self) -> JobStatus:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def cancel(self) -> None:
        raise AssertionError

    def result_future(self) -> Future[Any]:
        raise AssertionError

    def accumulators(self) -> dict[str, Any]:
        raise AssertionError


def test_a_stream() -> None:
    env = test_environment(parallelism=2)
    stream = env.from_collection([1], Types.INT()).map(lambda x: x, Types.STRING()).name("<b>plus</b>")
    assert repr(stream) == "<DataStream '<b>plus</b>', type String, parallelism 2>"
    shown = stream._repr_html_()
    assert "<b>" not in shown
    assert "&lt;b&gt;plus&lt;/b&gt; (2)<br>← Collection Source (1)" in shown
    keyed = stream.key_by(lambda x: x)
    assert repr(keyed).startswith("<KeyedStream '<b>plus</b>'")
    assert "KeyedStream" in keyed._repr_html_()
    assert "TumblingEventTimeWindows" in repr(keyed.window(TumblingEventTimeWindows.of(5000)))
    assert repr(stream.connect(stream)).count("plus") == 2
    assert repr(stream.print()) == "<DataStreamSink 'Print to Std. Out'>"
    assert repr(env) == "<StreamExecutionEnvironment, parallelism 2, 2 operators>"


def test_a_long_plan_is_cut() -> None:
    stream = test_environment().from_collection([1])
    for _ in range(20):
        stream = stream.map(lambda x: x)
    assert "… and 9 more" in stream._repr_html_()


def test_a_result() -> None:
    result = JobExecutionResult(JOB_ID, 12, {"<bad>": 3})
    assert repr(result) == f"<JobExecutionResult of job {JOB_ID}, 12 ms>"
    assert "&lt;bad&gt;" in result._repr_html_()
    assert str(JOB_ID) in result._repr_html_()


@pytest.mark.parametrize(
    ("answer", "shown"), [(JobStatus.RUNNING, "RUNNING"), (ConnectionError("gone"), "unknown status (ConnectionError)")]
)
def test_a_job(answer: Any, shown: str) -> None:
    client = JobClient(Handle(answer))
    assert repr(client) == f"<JobClient of job {JOB_ID}>"
    html = client._repr_html_()
    assert shown in html
    assert f'<a href="http://host:8081/#/jobs/{JOB_ID}">' in html


def test_a_configuration_without_its_secrets() -> None:
    html = Configuration().set_string("s3.secret-key", "tell-nobody").set_string("a", "<x>")._repr_html_()
    assert "tell-nobody" not in html
    assert "&lt;x&gt;" in html


def test_showing_the_results_of_a_job_takes_none_of_them() -> None:
    with test_environment().from_collection([1, 2]).execute_and_collect() as results:
        assert repr(results).startswith("<CloseableIterator over the results of <JobClient")
        assert list(results) == [1, 2]
