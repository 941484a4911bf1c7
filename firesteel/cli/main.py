"""The ``firesteel`` command: finds the verb, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from firesteel import __version__
from firesteel.cli import info, run, savepoint
from firesteel.cli.errors import CommandError
from firesteel.common.errors import FiresteelError

__all__ = ["main"]

OK, PROBLEM, USAGE, INTERRUPTED = 0, 1, 2, 130

_VERBS = (run, info, savepoint)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0: all is well, 1: a problem, such as a failed job, 2: it cannot do what it was asked to."""
    parser = _parser()
    try:
        try:
            options = parser.parse_args(arguments)
            code: int = options.run(options)
        finally:
            sys.stdout.flush()  # also after --help, which exits
    except CommandError as error:
        _complain(error)
        return USAGE
    except FiresteelError as error:
        _complain(error)
        return PROBLEM
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read the output has seen enough; the interpreter would complain again when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _complain(error: FiresteelError) -> None:
    print(f"firesteel: {error}", file=sys.stderr)  # noqa: T201 - the terminal is where a command speaks


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="firesteel", description="Runs jobs on Spark, and looks at what they leave.")
    parser.add_argument("--version", action="version", version=f"firesteel {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in _VERBS:
        verb.register(verbs)
    return parser
