"""``firesteel cluster``: starts and stops a session cluster on this machine, and says how it is doing."""

from __future__ import annotations

from typing import Any

from firesteel.cli.cluster import link, start, status, stop

__all__ = ["register"]

_VERBS = (start, stop, status, link)


def register(commands: Any) -> None:
    """Adds the command to those of the parser."""
    parser = commands.add_parser(
        "cluster",
        help="start, stop or look at a cluster",
        description="A cluster is one JobManager process, or several of which one leads, and the Spark it runs jobs "
        "on.",
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in _VERBS:
        verb.register(verbs)
