"""The parser of the command line: argparse, which also takes a program as Flink's command does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

__all__ = ["CommandParser"]

_SCRIPT = ("-py", "--python")
_MODULE = ("-pym", "--pyModule")


class CommandParser(argparse.ArgumentParser):
    """Parses ``-py job.py ARG…`` and ``-pym module ARG…`` where a verb takes a program.

    All following words that are not options of the verb are arguments of the program, so its own options need no
    ``--``.
    """

    takes_program = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Puts the program to where a program is expected."""
        given = None if args is None else list(args)
        if self.takes_program and given is not None and any(word in given for word in (*_SCRIPT, *_MODULE)):
            given = self._place_program(given)
        options, rest = super().parse_known_args(given, namespace)
        return options, rest

    def _place_program(self, arguments: list[str]) -> list[str]:
        head: list[str] = []
        program: str | None = None
        position = 0
        while position < len(arguments):
            action = self._option(arguments[position])
            if action is None:
                break
            takes_value = action.nargs != 0 and "=" not in arguments[position]
            words = arguments[position : position + (2 if takes_value else 1)]
            position += len(words)
            if words[0] in _SCRIPT and len(words) == 2:
                program = words[1]
                continue
            if words[0] in _MODULE and len(words) == 2:
                program = words[1]
            head += words
        if program is None:
            return arguments
        tail = arguments[position:]
        return [*head, program, *(tail[1:] if tail[:1] == ["--"] else tail)]

    def _option(self, word: str) -> argparse.Action | None:
        """The option that a word names, perhaps with its value; None if it is none of this verb's."""
        name = word.partition("=")[0]
        found = self._option_string_actions.get(name)
        if found is None and name.startswith("--") and len(name) > 2:
            alike = {id(action): action for key, action in self._option_string_actions.items() if key.startswith(name)}
            found = next(iter(alike.values())) if len(alike) == 1 else None
        if found is None and name.startswith("-D"):
            return _ONE_WORD
        return found


_ONE_WORD = argparse.Action([], "", nargs=0)
