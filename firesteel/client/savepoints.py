"""Triggers savepoints and checkpoints of jobs on a cluster, and waits until they complete."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

from firesteel.client.connection import PATIENCE_S, ClusterClient
from firesteel.common.errors import CheckpointError
from firesteel.rest import savepoints as rest
from firesteel.rest.checkpoints import CHECKPOINT_DETAILS
from firesteel.rest.client import RestClientError
from firesteel.rest.endpoint import Endpoint

__all__ = [
    "CheckpointKind",
    "dispose_savepoint",
    "request_savepoint",
    "request_stop",
    "trigger_checkpoint",
    "trigger_savepoint",
    "trigger_stop",
]

CheckpointKind = Literal["CONFIGURED", "FULL", "INCREMENTAL"]
_FIRST_POLL_S, _LAST_POLL_S = 0.05, 1.0


class _Operation(Protocol):
    status: rest.OperationStatus
    operation: Any


OperationT = TypeVar("OperationT", bound=_Operation)
Waiting = Callable[[], None]


def request_savepoint(
    client: ClusterClient, job_id: str, directory: str | None, *, native: bool = False, cancel: bool = False
) -> str:
    """Triggers a savepoint, optionally cancelling the job afterwards; returns the request id."""
    body = rest.SavepointTrigger(directory, cancel, "NATIVE" if native else "CANONICAL", uuid.uuid4().hex)
    return client.call(rest.TRIGGER_SAVEPOINT, {"jobid": job_id}, body=body).request_id


def trigger_savepoint(
    client: ClusterClient,
    job_id: str,
    directory: str | None,
    *,
    native: bool = False,
    cancel: bool = False,
    waiting: Waiting = lambda: None,
) -> str:
    """Takes a savepoint, optionally cancelling the job afterwards; returns the savepoint's path."""
    request_id = request_savepoint(client, job_id, directory, native=native, cancel=cancel)
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
    """Takes a savepoint and ends the job; returns the savepoint's path."""
    return _location(client, job_id, request_stop(client, job_id, directory, drain=drain, native=native), waiting)


def request_stop(
    client: ClusterClient, job_id: str, directory: str | None, *, drain: bool = False, native: bool = False
) -> str:
    """Triggers stop-with-savepoint; returns the request id."""
    body = rest.StopWithSavepoint(directory, drain, "NATIVE" if native else "CANONICAL", uuid.uuid4().hex)
    return client.call(rest.STOP_JOB, {"jobid": job_id}, body=body).request_id


def dispose_savepoint(client: ClusterClient, path: str, *, waiting: Waiting = lambda: None) -> None:
    """Deletes a savepoint on the cluster."""
    request_id = client.call(rest.DISPOSE_SAVEPOINT, body=rest.SavepointDisposal(path)).request_id
    _await(client, rest.DISPOSAL_STATUS, {"triggerid": request_id}, waiting)


def trigger_checkpoint(
    client: ClusterClient, job_id: str, kind: CheckpointKind = "CONFIGURED", *, waiting: Waiting = lambda: None
) -> tuple[int, str | None]:
    """Takes a checkpoint; returns its id, and its path if it is still retained."""
    path = {"jobid": job_id}
    body = rest.CheckpointTrigger(kind, uuid.uuid4().hex)
    request_id = client.call(rest.TRIGGER_CHECKPOINT, path, body=body).request_id
    done = _await(client, rest.CHECKPOINT_STATUS, {**path, "triggerid": request_id}, waiting)
    assert done.operation is not None
    number = done.operation.checkpoint_id
    try:
        location = client.call(CHECKPOINT_DETAILS, {**path, "checkpointid": number}).external_path
    except RestClientError:
        return number, None  # there were many since
    return number, location if isinstance(location, str) else None


def _location(client: ClusterClient, job_id: str, request_id: str, waiting: Waiting) -> str:
    done = _await(client, rest.SAVEPOINT_STATUS, {"jobid": job_id, "triggerid": request_id}, waiting)
    assert done.operation is not None
    return done.operation.location


def _await(
    client: ClusterClient, endpoint: Endpoint[Any, OperationT], path: dict[str, str], waiting: Waiting
) -> OperationT:
    """Polls until an operation is done; raises CheckpointError if it failed."""
    pause = _FIRST_POLL_S
    while True:
        try:
            answer = client.call(endpoint, path, patience=PATIENCE_S)
        except RestClientError as error:
            if error.status == 404:
                raise CheckpointError(
                    "The JobManager no longer has this request: its outcome is unknown.",
                    hint="Another JobManager may have taken over. Send the request again.",
                ) from None
            raise CheckpointError(error.message) from None
        if answer.status.id == "COMPLETED":
            return answer
        waiting()
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST_POLL_S)
