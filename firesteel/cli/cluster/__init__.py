"""``firesteel cluster``: starts, stops and shows a session cluster on this machine."""

from __future__ import annotations

from typing import Any

from firesteel.cli.cluster import link, start, status, stop

__all__ = ["register"]

_VERBS = (start, stop, status, link)


def register(commands: Any) -> None:
    """Adds the command to those of the parser."""
    parser = commands.add_parser(
        "cluster",
        help="start, stop or show a cluster",
        description="A cluster consists of a JobManager process, optionally with standby JobManagers, and the Spark "
        "application that runs its jobs.",
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in _VERBS:
        verb.register(verbs)
