"""``firesteel cancel``: ends a job."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.progress import TerminalProgress
from firesteel.cli.terminal.settings import add_cluster_options

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "cancel",
        help="cancel a job",
        description="Cancels a job and waits until it has ended. Exit codes: 0, 1 if it cannot be cancelled, 3 if no "
        "cluster responds.",
    )
    parser.add_argument("job", metavar="JOB", help="job id, id prefix, or name")
    parser.add_argument(
        "-s",
        "--withSavepoint",
        "--with-savepoint",
        dest="savepoint",
        metavar="DIRECTORY",
        nargs="?",
        const="",
        help="take a savepoint first, in this directory or in execution.checkpointing.savepoint-dir; prefer "
        "firesteel stop, which neither loses nor repeats output",
    )
    parser.add_argument("-d", "--detached", action="store_true", help="do not wait until the job has ended")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Cancels the job, after a savepoint if one is asked for, and waits until it has ended."""
    from firesteel.client.jobs import NotEndedError, await_end, find_job
    from firesteel.client.savepoints import trigger_savepoint
    from firesteel.rest.submission import CANCEL_JOB

    job = find_job(client, options.job)
    with TerminalProgress() as progress:
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
        state = await_end(client, job.jid, progress)
    if state != "CANCELED":
        raise NotEndedError(f"Job '{job.name}' ({job.jid}) is {state}: it ended before it could be cancelled.")
    print(f"Job {job.jid} is cancelled.")  # noqa: T201
    return 0
