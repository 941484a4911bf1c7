"""Savepoints and checkpoints of jobs on a cluster: asks for them, and waits until they are there."""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

from firesteel.cli.connection import ClusterClient, on_cluster
from firesteel.cli.errors import CommandError
from firesteel.cli.jobs import find_job, print_json
from firesteel.cli.progress import Progress
from firesteel.common.errors import CheckpointError
from firesteel.rest import savepoints as rest
from firesteel.rest.checkpoints import CHECKPOINT_DETAILS
from firesteel.rest.client import RestClientError
from firesteel.rest.endpoint import Endpoint

__all__ = ["dispose_savepoint", "take_checkpoint", "take_savepoint", "trigger_savepoint", "trigger_stop"]

PATIENCE_S = 60.0
"""How long a cluster may be silent while something is waited for."""
_FIRST_POLL_S, _LAST_POLL_S = 0.05, 1.0


class _Operation(Protocol):
    status: rest.OperationStatus
    operation: Any


OperationT = TypeVar("OperationT", bound=_Operation)
Waiting = Callable[[], None]


@on_cluster
def take_savepoint(options: argparse.Namespace, client: ClusterClient) -> int:
    """Takes a savepoint of a running job and prints its path."""
    if options.job is None:
        raise CommandError("Which job is the savepoint to be taken of?", hint="firesteel list shows the jobs.")
    job = find_job(client, options.job)
    native = options.format == "native"
    if options.detached:
        body = _savepoint(options.directory, native=native, cancel=False)
        request_id = client.call(rest.TRIGGER_SAVEPOINT, {"jobid": job.jid}, body=body).request_id
        _print(options, {"request-id": request_id}, f"The savepoint was asked for: request {request_id}.")
        return 0
    with Progress(quiet=options.json) as progress:
        waiting = lambda: progress.show(f"taking a savepoint of job '{job.name}' …")
        location = trigger_savepoint(client, job.jid, options.directory, native=native, waiting=waiting)
    _print(options, {"location": location}, f"Savepoint completed. Path: {location}")
    return 0


@on_cluster
def dispose_savepoint(options: argparse.Namespace, client: ClusterClient) -> int:
    """Has the cluster delete a savepoint."""
    body = rest.SavepointDisposal(options.dispose)
    request_id = client.call(rest.DISPOSE_SAVEPOINT, body=body).request_id
    with Progress(quiet=options.json) as progress:
        waiting = lambda: progress.show(f"deleting {options.dispose} …")
        _await(client, rest.DISPOSAL_STATUS, {"triggerid": request_id}, waiting)
    _print(options, {"disposed": options.dispose}, f"Savepoint {options.dispose} is deleted.")
    return 0


@on_cluster
def take_checkpoint(options: argparse.Namespace, client: ClusterClient) -> int:
    """Takes a checkpoint of a running job and prints its number and path."""
    job = find_job(client, options.job)
    kind: Literal["CONFIGURED", "FULL", "INCREMENTAL"] = (
        "FULL" if options.full else "INCREMENTAL" if options.incremental else "CONFIGURED"
    )
    path = {"jobid": job.jid}
    body = rest.CheckpointTrigger(kind, uuid.uuid4().hex)
    request_id = client.call(rest.TRIGGER_CHECKPOINT, path, body=body).request_id
    with Progress(quiet=options.json) as progress:
        waiting = lambda: progress.show(f"taking a checkpoint of job '{job.name}' …")
        done = _await(client, rest.CHECKPOINT_STATUS, {**path, "triggerid": request_id}, waiting)
    assert done.operation is not None
    number = done.operation.checkpoint_id
    location: Any = None
    try:
        location = client.call(CHECKPOINT_DETAILS, {**path, "checkpointid": number}).external_path
    except RestClientError:
        pass  # there were many since
    where = f" Path: {location}" if isinstance(location, str) else ""
    _print(
        options,
        {"checkpoint-id": number, "location": location if isinstance(location, str) else None},
        f"Checkpoint {number} completed.{where}",
    )
    return 0


def trigger_savepoint(
    client: ClusterClient,
    job_id: str,
    directory: str | None,
    *,
    native: bool = False,
    cancel: bool = False,
    waiting: Waiting = lambda: None,
) -> str:
    """Takes a savepoint, and cancels the job then if that is wanted; the savepoint's path."""
    path = {"jobid": job_id}
    body = _savepoint(directory, native=native, cancel=cancel)
    request_id = client.call(rest.TRIGGER_SAVEPOINT, path, body=body).request_id
    return _location(client, job_id, request_id, waiting)


def trigger_stop(
    client: ClusterClient,
    job_id: str,
    directory: str | None,
    *,
    drain: bool = False,
    native: bool = False,
    waiting: Waiting = lambda: None,
) -> str:
    """Takes a savepoint and ends the job; the savepoint's path."""
    return _location(client, job_id, request_stop(client, job_id, directory, drain=drain, native=native), waiting)


def request_stop(
    client: ClusterClient, job_id: str, directory: str | None, *, drain: bool = False, native: bool = False
) -> str:
    """Asks for a savepoint with which the job ends; the request's id."""
    body = rest.StopWithSavepoint(directory, drain, "NATIVE" if native else "CANONICAL", uuid.uuid4().hex)
    return client.call(rest.STOP_JOB, {"jobid": job_id}, body=body).request_id


def _savepoint(directory: str | None, *, native: bool, cancel: bool) -> rest.SavepointTrigger:
    return rest.SavepointTrigger(directory, cancel, "NATIVE" if native else "CANONICAL", uuid.uuid4().hex)


def _location(client: ClusterClient, job_id: str, request_id: str, waiting: Waiting) -> str:
    done = _await(client, rest.SAVEPOINT_STATUS, {"jobid": job_id, "triggerid": request_id}, waiting)
    assert done.operation is not None
    return done.operation.location


def _await(
    client: ClusterClient, endpoint: Endpoint[Any, OperationT], path: dict[str, str], waiting: Waiting
) -> OperationT:
    """Asks until an operation is done; CheckpointError if it has failed."""
    pause = _FIRST_POLL_S
    while True:
        try:
            answer = client.call(endpoint, path, patience=PATIENCE_S)
        except RestClientError as error:
            if error.status == 404:
                raise CheckpointError(
                    "The JobManager does not know of the request any more, so that its outcome is not known.",
                    hint="Perhaps another JobManager has taken over: ask again.",
                ) from None
            raise CheckpointError(error.message) from None
        if answer.status.id == "COMPLETED":
            return answer
        waiting()
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST_POLL_S)


def _print(options: argparse.Namespace, said: dict[str, Any], text: str) -> None:
    if options.json:
        print_json(said)
    else:
        print(text)  # noqa: T201
