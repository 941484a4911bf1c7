"""``firesteel checkpoint``: takes a checkpoint now."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import print_result
from firesteel.cli.terminal.progress import TerminalProgress
from firesteel.cli.terminal.settings import add_cluster_options

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "checkpoint",
        help="take a checkpoint of a job",
        description="Takes a checkpoint of a running job and waits until it completes. Exit codes: 0, 1 if it fails, 3 "
        "if no cluster responds.",
    )
    parser.add_argument("job", metavar="JOB", help="job id, id prefix, or name")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "-full", "--full", action="store_true", help="take a full checkpoint, which shares no files with earlier ones"
    )
    kind.add_argument(
        "-incremental",
        "--incremental",
        action="store_true",
        help="take an incremental checkpoint, if the job uses them",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Takes a checkpoint of a running job and prints its number and path."""
    from firesteel.client.jobs import find_job
    from firesteel.client.savepoints import CheckpointKind, trigger_checkpoint

    job = find_job(client, options.job)
    kind: CheckpointKind = "FULL" if options.full else "INCREMENTAL" if options.incremental else "CONFIGURED"
    with TerminalProgress(quiet=options.json) as progress:
        waiting = lambda: progress.show(f"taking a checkpoint of job '{job.name}' …")
        number, location = trigger_checkpoint(client, job.jid, kind, waiting=waiting)
    where = f" Path: {location}" if location is not None else ""
    print_result(
        {"checkpoint-id": number, "location": location},
        f"Checkpoint {number} completed.{where}",
        as_json=options.json,
    )
    return 0
