"""Ends jobs on a cluster: at once, or with a savepoint."""

from __future__ import annotations

import argparse
import time

from firesteel.cli.connection import ClusterClient, on_cluster
from firesteel.cli.jobs import ENDED, find_job, print_json
from firesteel.cli.progress import Progress
from firesteel.cli.snapshots import PATIENCE_S, request_stop, trigger_savepoint, trigger_stop
from firesteel.common.errors import FiresteelError
from firesteel.rest.jobs import JOB_STATUS
from firesteel.rest.submission import CANCEL_JOB

__all__ = ["NotEndedError", "await_end", "cancel_job", "stop_job"]

_POLL_S = 0.1
_CANCEL_S = 300.0


class NotEndedError(FiresteelError):
    """A job that goes on although it was told to end."""


@on_cluster
def cancel_job(options: argparse.Namespace, client: ClusterClient) -> int:
    """Cancels a job, perhaps after a savepoint, and waits until it is over."""
    job = find_job(client, options.job)
    with Progress() as progress:
        if options.savepoint is not None:
            directory = options.savepoint or None
            waiting = lambda: progress.show(f"taking a savepoint of job '{job.name}' …")
            location = trigger_savepoint(client, job.jid, directory, cancel=True, waiting=waiting)
            progress.clear()
            print(f"Savepoint completed. Path: {location}")  # noqa: T201
        else:
            client.call(CANCEL_JOB, {"jobid": job.jid})
        if options.detached:
            print(f"Job {job.jid} is being cancelled.")  # noqa: T201
            return 0
        state = await_end(client, job.jid, _CANCEL_S, progress)
    if state != "CANCELED":
        raise NotEndedError(f"Job '{job.name}' ({job.jid}) is {state}: it has ended before it could be cancelled.")
    print(f"Job {job.jid} is cancelled.")  # noqa: T201
    return 0


@on_cluster
def stop_job(options: argparse.Namespace, client: ClusterClient) -> int:
    """Takes a savepoint, ends the job with it, and prints the savepoint's path."""
    job = find_job(client, options.job)
    native = options.format == "native"
    if options.detached:
        request_id = request_stop(client, job.jid, options.savepoint, drain=options.drain, native=native)
        if options.json:
            print_json({"request-id": request_id})
        else:
            print(f"The job was told to stop: request {request_id}.")  # noqa: T201
        return 0
    with Progress(quiet=options.json) as progress:
        waiting = lambda: progress.show(f"stopping job '{job.name}' with a savepoint …")
        location = trigger_stop(client, job.jid, options.savepoint, drain=options.drain, native=native, waiting=waiting)
        # printed before the job has ended: from now on that cannot get lost any more
        progress.clear()
        if not options.json:
            print(f"Savepoint completed. Path: {location}", flush=True)  # noqa: T201
        state = await_end(client, job.jid, _CANCEL_S, progress)
    if options.json:
        print_json({"location": location, "state": state})
    if state != "FINISHED":
        raise NotEndedError(
            f"Job '{job.name}' ({job.jid}) took the savepoint, but is {state}.",
            hint=f"firesteel exceptions {job.jid} may say why.",
        )
    return 0


def await_end(client: ClusterClient, job_id: str, seconds: float, progress: Progress) -> str:
    """Waits until a job is over; its last state. NotEndedError if it takes longer than that."""
    deadline = time.monotonic() + seconds
    while True:
        state = client.call(JOB_STATUS, {"jobid": job_id}, patience=PATIENCE_S).status
        if state in ENDED:
            return state
        if time.monotonic() > deadline:
            raise NotEndedError(
                f"Job {job_id} is still {state} after {seconds:g} s.", hint=f"firesteel status {job_id} shows it."
            )
        progress.show(f"job {job_id} is {state} …")
        time.sleep(_POLL_S)
