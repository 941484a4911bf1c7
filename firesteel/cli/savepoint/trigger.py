"""``firesteel savepoint JOB [DIRECTORY]``: takes a savepoint of a running job."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import print_result
from firesteel.cli.terminal.progress import TerminalProgress
from firesteel.cli.terminal.settings import add_cluster_options
from firesteel.client.errors import UsageError

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel savepoint``."""
    parser = commands.add_parser(
        "trigger",
        help="take a savepoint of a running job; trigger may be omitted",
        description="Takes a savepoint of a running job, waits for it and prints its path. With -d, deletes a "
        "savepoint instead. Exit codes: 0, 1 if the savepoint fails, 3 if no cluster responds.",
    )
    parser.add_argument("job", metavar="JOB", nargs="?", help="job id, id prefix, or name")
    parser.add_argument(
        "directory",
        metavar="DIRECTORY",
        nargs="?",
        help="target directory; default: execution.checkpointing.savepoint-dir",
    )
    parser.add_argument("-d", "--dispose", metavar="PATH", help="delete this savepoint")
    parser.add_argument("-detached", "--detached", action="store_true", help="do not wait; print the request id")
    parser.add_argument(
        "-type", "--type", dest="format", choices=("canonical", "native"), default="canonical", help="savepoint format"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Takes a savepoint of a running job and prints its path, or deletes a savepoint."""
    from firesteel.client.jobs import find_job
    from firesteel.client.savepoints import dispose_savepoint, request_savepoint, trigger_savepoint

    if options.dispose is not None:
        with TerminalProgress(quiet=options.json) as progress:
            waiting = lambda: progress.show(f"deleting {options.dispose} …")
            dispose_savepoint(client, options.dispose, waiting=waiting)
        text = f"Savepoint {options.dispose} is deleted."
        print_result({"disposed": options.dispose}, text, as_json=options.json)
        return 0
    if options.job is None:
        raise UsageError("No job given.", hint="Run firesteel list to see the jobs.")
    job = find_job(client, options.job)
    native = options.format == "native"
    if options.detached:
        request_id = request_savepoint(client, job.jid, options.directory, native=native)
        text = f"Savepoint triggered, request id {request_id}."
        print_result({"request-id": request_id}, text, as_json=options.json)
        return 0
    with TerminalProgress(quiet=options.json) as progress:
        waiting = lambda: progress.show(f"taking a savepoint of job '{job.name}' …")
        location = trigger_savepoint(client, job.jid, options.directory, native=native, waiting=waiting)
    print_result({"location": location}, f"Savepoint completed. Path: {location}", as_json=options.json)
    return 0
