"""``firesteel run``: runs a program here, with the settings of the command line."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli import info
from firesteel.cli.program import run_program
from firesteel.cli.resuming import ResumingExecutor
from firesteel.cli.settings import add_program_options, program_settings
from firesteel.datastream.executor import context_executor

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "run",
        help="run a program",
        description="Runs a program in this process, as python would, with the options as defaults of its "
        "environments: what the program itself sets wins. Exit codes: that of the program; 1 if a job or the program "
        "fails, 2 if it cannot be started, 130 after Ctrl-C, which cancels the job.",
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the plan of the program's first job and run nothing"
    )
    add_program_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the program; its exit code."""
    if options.explain:
        return info.show(options, "text")
    executor = ResumingExecutor(context_executor())
    return run_program(options.program, options.arguments, program_settings(options), executor)
