from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future

import pytest

from firesteel.common import CompletableFuture, JobClient, JobExecutionResult, JobID, JobStatus
from firesteel.common.errors import FiresteelError


class Handle:
    def __init__(self):
        self.id = JobID()
        self.result = Future()
        self.state = JobStatus.RUNNING

    def job_id(self):
        return self.id

    def status(self):
        return self.state

    def cancel(self):
        self.state = JobStatus.CANCELLING

    def result_future(self):
        return self.result

    def accumulators(self):
        return {"n": 1}


def test_the_first_to_complete_a_future_wins():
    future = CompletableFuture()
    assert not future.done()
    assert future.exception() is None
    assert future.set_result(1) is True
    assert future.set_result(2) is False
    assert future.set_exception(ValueError()) is False
    assert future.cancel() is False
    assert (future.result(), future.done(), future.cancelled(), future.exception()) == (1, True, False, None)


def test_failed_futures():
    error = ValueError("no")
    future = CompletableFuture.failed(error)
    assert future.exception() is error
    assert "no" in str(future)
    with pytest.raises(ValueError, match="no"):
        future.result()


def test_cancelled_futures():
    future = CompletableFuture()
    assert future.cancel() is True
    assert future.cancelled()
    assert future.done()
    assert isinstance(future.exception(), CancelledError)
    with pytest.raises(CancelledError):
        future.result()


def test_result_waits_and_times_out():
    future = CompletableFuture()
    with pytest.raises(TimeoutError):
        future.result(timeout=0.001)
    thread = threading.Thread(target=future.set_result, args=(7,))
    thread.start()
    assert future.result(timeout=60) == 7
    thread.join()


def test_py_class_and_then_apply_convert_results():
    inner = Future()
    future = CompletableFuture(inner, str)
    following = future.then_apply(lambda text: text + "!")
    seen = []
    future.add_done_callback(seen.append)
    inner.set_result(7)
    assert future.result() == "7"
    assert following.result() == "7!"
    assert seen == [future]


def test_then_apply_passes_errors_and_cancellations_on():
    error = ValueError()
    assert CompletableFuture.failed(error).then_apply(str).exception() is error
    cancelled = CompletableFuture()
    cancelled.cancel()
    assert cancelled.then_apply(str).cancelled()
    assert isinstance(CompletableFuture.completed(1).then_apply(lambda _: 1 / 0).exception(), ZeroDivisionError)


def test_futures_print_their_state():
    assert str(CompletableFuture()) == "CompletableFuture[not completed]"
    assert str(CompletableFuture.completed(1)) == "CompletableFuture[completed normally]"


def test_job_client():
    handle = Handle()
    client = JobClient(handle)
    assert client.get_job_id() == handle.id
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert client.get_accumulators().result() == {"n": 1}
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELLING
    outcome = client.get_job_execution_result()
    assert not outcome.done()
    result = JobExecutionResult(handle.id, 12, {"n": 1})
    handle.result.set_result(result)
    assert outcome.result() is result


def test_a_handle_that_raises_gives_a_failed_future():
    class Gone(Handle):
        def status(self):
            raise ConnectionError("gone")

    assert isinstance(JobClient(Gone()).get_job_status().exception(), ConnectionError)


def test_savepoints_need_a_handle_that_has_them():
    class WithSavepoints(Handle):
        def trigger_savepoint(self, directory):
            return f"{directory}/sp"

        def stop_with_savepoint(self, advance, directory):
            return (advance, directory)

    assert isinstance(JobClient(Handle()).trigger_savepoint().exception(), FiresteelError)
    assert isinstance(JobClient(Handle()).stop_with_savepoint(True).exception(), FiresteelError)
    client = JobClient(WithSavepoints())
    assert client.trigger_savepoint("/x").result() == "/x/sp"
    assert client.stop_with_savepoint(True, "/x").result() == (True, "/x")


def test_job_ids():
    assert len(str(JobID())) == 32
    assert JobID() != JobID()
    job_id = JobID.from_hex_string("AB" * 16)
    assert str(job_id) == job_id.to_hex_string() == "ab" * 16
    assert job_id == JobID("ab" * 16)
    assert hash(job_id) == hash(JobID("ab" * 16))
    for text in ("", "ab", "zz" * 16, "ab" * 17):
        with pytest.raises(ValueError):
            JobID(text)


def test_job_status():
    assert {s for s in JobStatus if s.is_globally_terminal_state()} == {
        JobStatus.FAILED,
        JobStatus.CANCELED,
        JobStatus.FINISHED,
    }
    assert {s for s in JobStatus if s.is_terminal_state() and not s.is_globally_terminal_state()} == {
        JobStatus.SUSPENDED
    }


def test_job_execution_result():
    result = JobExecutionResult(JobID("ab" * 16), 12, {"n": 1})
    assert result.get_job_id() == JobID("ab" * 16)
    assert result.get_net_runtime() == 12
    assert result.get_accumulator_result("n") == 1
    assert result.get_accumulator_result("m") is None
    assert result.get_all_accumulator_results() == {"n": 1}
    assert "12 ms" in str(result)
    assert "ab" * 16 in str(result)
