"""``firesteel savepoint``: looks into savepoints and checkpoints, compares them with programs, deletes them."""

from __future__ import annotations

from typing import Any

from firesteel.cli.savepoint import diff, dispose, inspect

__all__ = ["register"]

_VERBS = (inspect, diff, dispose)


def register(commands: Any) -> None:
    """Adds the command to those of the parser."""
    parser = commands.add_parser(
        "savepoint",
        help="inspect, compare or delete a savepoint",
        description="Looks into savepoints and checkpoints, compares them with programs, deletes savepoints.",
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in _VERBS:
        verb.register(verbs)
