"""REST handlers that trigger savepoints and checkpoints, and dispose of savepoints."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from firesteel.cluster.dispatcher.dispatcher import Dispatcher, JobNotFoundError
from firesteel.cluster.rest.async_operations import AsyncOperations
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.common.errors import CheckpointError, FiresteelError
from firesteel.config import checkpointing_options
from firesteel.filesystem.stores import Stores
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.rest.savepoints import (
    CHECKPOINT_STATUS,
    DISPOSAL_STATUS,
    DISPOSE_SAVEPOINT,
    SAVEPOINT_STATUS,
    STOP_JOB,
    TRIGGER_CHECKPOINT,
    TRIGGER_SAVEPOINT,
    AsyncOperation,
    CheckpointInfo,
    CheckpointOperation,
    CheckpointTrigger,
    DisposalInfo,
    DisposalOperation,
    OperationStatus,
    SavepointDisposal,
    SavepointInfo,
    SavepointOperation,
    SavepointTrigger,
    StopWithSavepoint,
)
from firesteel.runtime.checkpoint import storage as checkpoint_storage
from firesteel.runtime.checkpoint.layout import checkpoint_id_of

__all__ = ["routes"]

T = TypeVar("T")
_IN_PROGRESS = OperationStatus("IN_PROGRESS")
_COMPLETED = OperationStatus("COMPLETED")
_NO_JOB = ""
"""Deletions do not belong to a job."""


def routes(dispatcher: Dispatcher) -> list[Route]:
    savepoints: AsyncOperations[str] = AsyncOperations()
    checkpoints: AsyncOperations[int] = AsyncOperations()
    disposals: AsyncOperations[bool] = AsyncOperations()
    # a savepoint to be deleted belongs to no job that runs: it is reached with the settings of the cluster
    stores = Stores.of(dispatcher.configuration)

    def trigger_savepoint(request: RestRequest[SavepointTrigger]) -> AsyncOperation:
        job_id, body = request.path["jobid"], request.body
        directory = _directory(dispatcher, job_id, body.target_directory, "target-directory")
        native = body.format_type == "NATIVE"

        def take(runner: JobMasterRunner) -> Future[str]:
            taken = runner.trigger_savepoint(directory, native=native)
            return _then_cancel(dispatcher, job_id, taken) if body.cancel_job else taken

        return AsyncOperation(savepoints.trigger(job_id, body.trigger_id, _of_job(dispatcher, job_id, take)))

    def stop(request: RestRequest[StopWithSavepoint]) -> AsyncOperation:
        job_id, body = request.path["jobid"], request.body
        directory = _directory(dispatcher, job_id, body.target_directory, "targetDirectory")

        def take(runner: JobMasterRunner) -> Future[str]:
            return runner.stop_with_savepoint(body.drain, directory, native=body.format_type == "NATIVE")

        return AsyncOperation(savepoints.trigger(job_id, body.trigger_id, _of_job(dispatcher, job_id, take)))

    def savepoint_status(request: RestRequest[Any]) -> SavepointOperation:
        location = savepoints.poll(request.path["jobid"], request.path["triggerid"])
        if location is None:
            return SavepointOperation(_IN_PROGRESS)
        return SavepointOperation(_COMPLETED, SavepointInfo(location))

    def trigger_checkpoint(request: RestRequest[CheckpointTrigger]) -> AsyncOperation:
        job_id, body = request.path["jobid"], request.body

        def take(runner: JobMasterRunner) -> Future[int]:
            return _mapped(runner.trigger_checkpoint(full=body.checkpoint_type == "FULL"), _number_of)

        return AsyncOperation(checkpoints.trigger(job_id, body.trigger_id, _of_job(dispatcher, job_id, take)))

    def checkpoint_status(request: RestRequest[Any]) -> CheckpointOperation:
        number = checkpoints.poll(request.path["jobid"], request.path["triggerid"])
        if number is None:
            return CheckpointOperation(_IN_PROGRESS)
        return CheckpointOperation(_COMPLETED, CheckpointInfo(number))

    def dispose(request: RestRequest[SavepointDisposal]) -> AsyncOperation:
        path = request.body.savepoint_path
        if not path.strip() or "\0" in path:
            raise RestError(400, "savepoint-path must name a savepoint.")
        call = stores.bind(lambda: _dispose(dispatcher, path))
        return AsyncOperation(disposals.trigger(_NO_JOB, None, lambda: _in_thread(call)))

    def disposal_status(request: RestRequest[Any]) -> DisposalOperation:
        if disposals.poll(_NO_JOB, request.path["triggerid"]) is None:
            return DisposalOperation(_IN_PROGRESS)
        return DisposalOperation(_COMPLETED, DisposalInfo())

    return [
        Route(TRIGGER_SAVEPOINT, trigger_savepoint),
        Route(STOP_JOB, stop),
        Route(SAVEPOINT_STATUS, savepoint_status),
        Route(TRIGGER_CHECKPOINT, trigger_checkpoint),
        Route(CHECKPOINT_STATUS, checkpoint_status),
        Route(DISPOSE_SAVEPOINT, dispose),
        Route(DISPOSAL_STATUS, disposal_status),
    ]


def _directory(dispatcher: Dispatcher, job_id: str, given: str | None, field: str) -> str:
    """The directory of a savepoint: of the request, else of the job or the cluster."""
    if given is not None and given.strip():
        if "\0" in given:
            raise RestError(400, f"{field} cannot have a null character.")
        return given
    try:
        configurations = [dispatcher.job(job_id).view().configuration, dispatcher.configuration]
    except JobNotFoundError:
        configurations = [dispatcher.configuration]
    for configuration in configurations:
        directory = configuration.get(checkpointing_options.SAVEPOINTS_DIRECTORY)
        if directory is not None:
            return directory
    raise RestError(
        400,
        f"There is no target directory for the savepoint. Specify one ({field}), or "
        f"set {checkpointing_options.SAVEPOINTS_DIRECTORY.key} for the job or for the cluster.",
    )


def _of_job(
    dispatcher: Dispatcher, job_id: str, take: Callable[[JobMasterRunner], Future[T]]
) -> Callable[[], Future[T]]:
    """Sends a request to a job; if there is no such job, or it has ended, the poller gets the error."""

    def start() -> Future[T]:
        try:
            return take(dispatcher.job(job_id).running())
        except FiresteelError as error:
            failed: Future[T] = Future()
            failed.set_exception(error)
            return failed

    return start


def _then_cancel(dispatcher: Dispatcher, job_id: str, taken: Future[str]) -> Future[str]:
    def cancel(path: str) -> str:
        dispatcher.job(job_id).cancel()
        return path

    return _mapped(taken, cancel)


def _mapped(before: Future[str], function: Callable[[str], T]) -> Future[T]:
    after: Future[T] = Future()

    def complete(done: Future[str]) -> None:
        try:
            after.set_result(function(done.result()))
        except Exception as error:  # noqa: BLE001 - returned to the poller
            after.set_exception(error)

    before.add_done_callback(complete)
    return after


def _number_of(path: str) -> int:
    number = checkpoint_id_of(path.rstrip("/").rpartition("/")[2])
    if number is None:
        raise CheckpointError(f"{path} is not the directory of a checkpoint.")
    return number


def _in_thread(call: Callable[[], Any]) -> Future[Any]:
    """Makes a call in a thread of its own: storage may be slow, and there is nothing that could be waited with."""
    future: Future[Any] = Future()

    def make() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - returned to the poller
            future.set_exception(error)

    threading.Thread(target=make, name="firesteel-dispose", daemon=True).start()
    return future


def _dispose(dispatcher: Dispatcher, path: str) -> bool:
    directory = checkpoint_storage.resolve(path)
    for job in dispatcher.jobs():
        runner = job.runner
        if runner is None or job.is_over:
            continue
        if directory in runner.snapshot.retained_checkpoints:
            raise CheckpointError(
                f"{directory} belongs to job '{job.name}' ({job.job_id}), which runs.",
                hint="The job deletes its checkpoints itself. Cancel it first.",
            )
    checkpoint_storage.dispose(directory)
    return True
