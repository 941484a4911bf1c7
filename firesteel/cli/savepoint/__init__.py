"""``firesteel savepoint``: takes, inspects, compares and deletes savepoints."""

from __future__ import annotations

from typing import Any

from firesteel.cli.savepoint import diff, dispose, inspect, trigger

__all__ = ["register", "with_verb"]

_VERBS = (trigger, inspect, diff, dispose)
_NAMES = {"trigger", "inspect", "diff", "dispose", "-h", "--help"}


def register(commands: Any) -> None:
    """Adds the command to those of the parser."""
    parser = commands.add_parser(
        "savepoint",
        help="take, inspect, compare or delete a savepoint",
        description="firesteel savepoint JOB [DIRECTORY] takes a savepoint of a running job; see firesteel savepoint "
        "trigger --help. The other commands inspect savepoints and checkpoints, compare them with programs, "
        "and delete savepoints.",
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in _VERBS:
        verb.register(verbs)


def with_verb(words: list[str]) -> list[str]:
    """``savepoint JOB``, as Flink's command has it, is ``savepoint trigger JOB`` here.

    >>> with_verb(["savepoint", "my job"]), with_verb(["savepoint", "inspect", "/data/s1"])
    (['savepoint', 'trigger', 'my job'], ['savepoint', 'inspect', '/data/s1'])
    """
    if words[:1] == ["savepoint"] and len(words) > 1 and words[1] not in _NAMES:
        return ["savepoint", "trigger", *words[1:]]
    return words
