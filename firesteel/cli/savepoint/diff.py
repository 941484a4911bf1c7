"""``firesteel savepoint diff``: what a program would restore from a savepoint."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_settings_option

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel savepoint``."""
    parser = commands.add_parser(
        "diff",
        help="say what a program would restore from a savepoint",
        description="Builds the program's job without running it, opens its keyed functions to see which states they "
        "ask for, and says for every operator what would be restored, new, dropped or incompatible. Exit codes: 0 if "
        "the job would start from the savepoint, 1 if it would be refused, 2 if that cannot be said.",
    )
    parser.add_argument("savepoint", metavar="SAVEPOINT", help="directory of a savepoint or checkpoint")
    parser.add_argument("program", metavar="PROGRAM.py", help="the script that defines the job")
    parser.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="arguments of the program")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-p", "--parallelism", type=int, help="default parallelism of the program")
    add_settings_option(parser)
    parser.add_argument("--no-open", action="store_true", help="do not call open() of the program's functions")
    parser.add_argument(
        "-n", "--allow-non-restored-state", action="store_true", help="state without an operator is no reason to refuse"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; 1 if the job would be refused."""
    from firesteel.cli.savepoint.comparison import show

    return show(options)
