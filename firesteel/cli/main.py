"""The ``firesteel`` command: finds the verb, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from firesteel import __version__
from firesteel.cli import (
    cancel,
    checkpoint,
    cluster,
    completion,
    exceptions,
    info,
    logs,
    metrics,
    rescale,
    run,
    run_application,
    savepoint,
    sql,
    sql_gateway,
    status,
    stop,
)
from firesteel.cli import list as list_jobs
from firesteel.cli.terminal.command_parser import CommandParser
from firesteel.client.errors import ClusterNotFoundError, UsageError
from firesteel.common.errors import FiresteelError
from firesteel.config.redaction import printable

__all__ = ["main", "parser"]

OK, PROBLEM, USAGE, NO_CLUSTER, INTERRUPTED = 0, 1, 2, 3, 130

# Importing a verb must cost next to nothing: what it needs it imports when it runs.
_VERBS = (
    run,
    run_application,
    info,
    sql,
    sql_gateway,
    list_jobs,
    status,
    cancel,
    stop,
    savepoint,
    checkpoint,
    rescale,
    metrics,
    exceptions,
    logs,
    cluster,
    completion,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    0: all is well, 1: a problem, such as a failed job, 2: it cannot do what it was asked to, 3: no cluster answers,
    130: Ctrl-C.
    """
    words = savepoint.with_verb(list(sys.argv[1:] if arguments is None else arguments))
    try:
        try:
            options = parser().parse_args(words)
            code: int = options.run(options)
        finally:
            sys.stdout.flush()  # also after --help, which exits
    except UsageError as error:
        _complain(error)
        return USAGE
    except ClusterNotFoundError as error:
        _complain(error)
        return NO_CLUSTER
    except FiresteelError as error:
        _complain(error)
        return NO_CLUSTER if _is_unreachable(error) else PROBLEM
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # the reader closed the pipe; the interpreter would raise again when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _is_unreachable(error: FiresteelError) -> bool:
    from firesteel.rest.client import ConnectionFailedError

    return isinstance(error, ConnectionFailedError)


def _complain(error: FiresteelError) -> None:
    print(printable(f"firesteel: {error}"), file=sys.stderr)  # noqa: T201 - the terminal is where a command speaks


def parser() -> CommandParser:
    """The parser of the whole command line."""
    parser = CommandParser(prog="firesteel", description="Submits and manages streaming jobs on Spark.")
    parser.add_argument("--version", action="version", version=f"firesteel {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in _VERBS:
        verb.register(verbs)
    return parser
