from __future__ import annotations

from concurrent.futures import Future

import pytest

from firesteel.cluster.rest.async_operations import AsyncOperations, Completed, Failed, InProgress
from firesteel.cluster.rest.request import RestError
from firesteel.common.errors import CheckpointError

JOB = "a" * 32
GIVEN = "B" * 32


def never() -> Future[str]:
    raise AssertionError("must not be started")


def test_from_start_to_end() -> None:
    operations: AsyncOperations[str] = AsyncOperations()
    future: Future[str] = Future()
    trigger_id = operations.trigger(JOB, None, lambda: future)
    assert len(trigger_id) == 32
    assert operations.result(JOB, trigger_id) == InProgress()
    assert operations.poll(JOB, trigger_id) is None
    future.set_result("file:/savepoint-1")
    assert operations.result(JOB, trigger_id) == Completed("file:/savepoint-1")
    assert operations.poll(JOB, trigger_id) == "file:/savepoint-1"


def test_a_given_id_starts_one_operation_only() -> None:
    operations: AsyncOperations[str] = AsyncOperations()
    future: Future[str] = Future()
    assert operations.trigger(JOB, GIVEN, lambda: future) == GIVEN.lower()
    assert operations.trigger(JOB, GIVEN, never) == GIVEN.lower()
    future.set_result("done")
    assert operations.trigger(JOB, GIVEN, never) == GIVEN.lower()
    assert operations.result(JOB, GIVEN.lower()) == Completed("done")


def test_the_same_id_of_another_job_is_another_operation() -> None:
    operations: AsyncOperations[str] = AsyncOperations()
    operations.trigger(JOB, GIVEN, Future)
    with pytest.raises(RestError) as caught:
        operations.result("c" * 32, GIVEN.lower())
    assert caught.value.status == 404


def test_a_failure_is_an_outcome_and_polling_for_it_an_error() -> None:
    operations: AsyncOperations[str] = AsyncOperations()
    future: Future[str] = Future()
    trigger_id = operations.trigger(JOB, None, lambda: future)
    error = CheckpointError("The disk is full.", hint="Make room.")
    future.set_exception(error)
    assert operations.result(JOB, trigger_id) == Failed(error)
    with pytest.raises(RestError) as caught:
        operations.poll(JOB, trigger_id)
    assert (caught.value.status, caught.value.message) == (500, "The disk is full.\nHint: Make room.")


def test_an_operation_that_is_given_up_has_failed() -> None:
    operations: AsyncOperations[str] = AsyncOperations()
    future: Future[str] = Future()
    trigger_id = operations.trigger(JOB, None, lambda: future)
    assert future.cancel()
    assert isinstance(operations.result(JOB, trigger_id), Failed)


def test_what_cannot_be_started_is_not_known() -> None:
    operations: AsyncOperations[str] = AsyncOperations()

    def refuse() -> Future[str]:
        raise RestError(400, "No directory.")

    with pytest.raises(RestError, match="No directory"):
        operations.trigger(JOB, GIVEN, refuse)
    with pytest.raises(RestError) as caught:
        operations.result(JOB, GIVEN.lower())
    assert caught.value.status == 404
    assert operations.trigger(JOB, GIVEN, Future) == GIVEN.lower()


def test_outcomes_are_forgotten_after_five_minutes_but_not_what_runs() -> None:
    now = [1000.0]
    operations: AsyncOperations[str] = AsyncOperations(clock=lambda: now[0])
    running: Future[str] = Future()
    ended: Future[str] = Future()
    running_id, ended_id = (operations.trigger(JOB, None, lambda f=f: f) for f in (running, ended))
    ended.set_result("done")
    now[0] += 299
    assert operations.result(JOB, ended_id) == Completed("done")
    now[0] += 2
    with pytest.raises(RestError) as caught:
        operations.result(JOB, ended_id)
    assert caught.value.status == 404
    assert operations.result(JOB, running_id) == InProgress()


@pytest.mark.parametrize("trigger_id", ["", "x", "g" * 32, "a" * 33])
def test_an_id_that_is_none_is_refused(trigger_id: str) -> None:
    with pytest.raises(RestError) as caught:
        AsyncOperations[str]().trigger(JOB, trigger_id, never)
    assert caught.value.status == 400
