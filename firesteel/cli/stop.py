"""``firesteel stop``: ends a job with a savepoint."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import print_json, print_result
from firesteel.cli.terminal.progress import TerminalProgress
from firesteel.cli.terminal.settings import add_cluster_options

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "stop",
        help="stop a job with a savepoint",
        description="Stops the sources, takes a savepoint, commits the job's output and ends the job; prints the "
        "savepoint path. Exit codes: 0, 1 if the savepoint fails, in which case the job continues, 3 if no "
        "cluster responds.",
    )
    parser.add_argument("job", metavar="JOB", help="job id, id prefix, or name")
    parser.add_argument(
        "-p",
        "--savepointPath",
        "--savepoint-path",
        dest="savepoint",
        metavar="DIRECTORY",
        help="target directory; default: execution.checkpointing.savepoint-dir",
    )
    parser.add_argument(
        "-d",
        "--drain",
        action="store_true",
        help="fire all windows and timers before the savepoint; for a job that will not be resumed",
    )
    parser.add_argument(
        "-type", "--type", dest="format", choices=("canonical", "native"), default="canonical", help="savepoint format"
    )
    parser.add_argument("-detached", "--detached", action="store_true", help="do not wait; print the request id")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Takes a savepoint, ends the job with it, and prints the savepoint's path."""
    from firesteel.client.jobs import NotEndedError, await_end, find_job
    from firesteel.client.savepoints import request_stop, trigger_stop

    job = find_job(client, options.job)
    native = options.format == "native"
    if options.detached:
        request_id = request_stop(client, job.jid, options.savepoint, drain=options.drain, native=native)
        text = f"Stop with savepoint triggered, request id {request_id}."
        print_result({"request-id": request_id}, text, as_json=options.json)
        return 0
    with TerminalProgress(quiet=options.json) as progress:
        waiting = lambda: progress.show(f"stopping job '{job.name}' with a savepoint …")
        location = trigger_stop(client, job.jid, options.savepoint, drain=options.drain, native=native, waiting=waiting)
        # printed before the job has ended: from now on that cannot get lost any more
        progress.clear()
        if not options.json:
            print(f"Savepoint completed. Path: {location}", flush=True)  # noqa: T201
        state = await_end(client, job.jid, progress)
    if options.json:
        print_json({"location": location, "state": state})
    if state != "FINISHED":
        raise NotEndedError(
            f"Job '{job.name}' ({job.jid}) completed the savepoint, but is {state}.",
            hint=f"Run firesteel exceptions {job.jid} to see the cause.",
        )
    return 0
