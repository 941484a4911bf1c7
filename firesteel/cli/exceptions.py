"""``firesteel exceptions``: what went wrong in a job."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import count, indented, local_time, print_json
from firesteel.cli.terminal.settings import add_cluster_options, positive
from firesteel.config.redaction import printable

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "exceptions",
        help="show why a job failed or restarted",
        description="Shows the failures of a job, the latest first, with the line of the program that failed. Exit "
        "codes: 0, 1 if the job does not exist, 3 if no cluster responds.",
    )
    parser.add_argument("job", metavar="JOB", help="job id, id prefix, or name")
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=10, help="maximum number of failures to show (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    import msgspec

    from firesteel.client.jobs import find_job
    from firesteel.rest.exceptions import JOB_EXCEPTIONS

    job = find_job(client, options.job)
    answer = client.call(JOB_EXCEPTIONS, {"jobid": job.jid}, {"maxExceptions": options.limit})
    if options.json:
        print_json(answer)
        return 0
    history = answer.exception_history
    if not history.entries:
        print(printable(f"Job '{job.name}' has had no failures."))  # noqa: T201
    for entry in history.entries:
        place = "" if entry.task_name is msgspec.UNSET else f", {entry.task_name}"
        where = "" if entry.endpoint is msgspec.UNSET else f" at {entry.endpoint}"
        print(printable(f"{local_time(entry.timestamp)}{place}{where}"))  # noqa: T201
        print(printable("\n".join(indented(entry.stacktrace.rstrip().splitlines()))))  # noqa: T201
        if entry.concurrent_exceptions:
            print(f"  (and {count(len(entry.concurrent_exceptions), 'failure')} at the same time)")  # noqa: T201
        print()  # noqa: T201
    if history.truncated:
        print("There are more failures; use --limit N to show them.")  # noqa: T201
    return 0
