"""``firesteel run-application``: a cluster for one program, which runs in the JobManager itself."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_jobmanager_options, add_program_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "run-application",
        help="run a program in a cluster of its own",
        description="Starts a JobManager that runs the program itself and ends with its jobs. If it is lost or "
        "stopped, the same command with --id and the id that was printed goes on from the last checkpoint. Exit codes: "
        "0 once it is started, or with --foreground when its jobs have finished; 1 if it cannot be started or a job "
        "failed or was cancelled.",
    )
    add_jobmanager_options(parser)
    add_program_options(parser, settings=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Starts the JobManager."""
    from firesteel.cli.starting import start_application

    return start_application(options)
