"""When the text of the editor is complete, and which commands are the shell's own."""

from __future__ import annotations

import re

from firesteel.cli.sql.editing.highlighting import spans
from firesteel.table.parser import SqlParserException
from firesteel.table.parser.scripts import split_script
from firesteel.table.parser.tokens import tokenize

__all__ = ["COMMANDS", "command_of", "is_complete"]

COMMANDS = {"HELP": "HELP", "QUIT": "QUIT", "EXIT": "QUIT", "CLEAR": "CLEAR"}
"""Statements that the shell executes itself; they need no semicolon."""

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def command_of(text: str) -> str | None:
    """The command of the shell that a statement is, if it is one."""
    return COMMANDS.get(_COMMENT.sub(" ", text).strip().rstrip(";").rstrip().upper())


def _is_open_comment(part: tuple[str, str]) -> bool:
    kind, text = part
    return kind in ("comment", "hint") and text.startswith("/*") and not text.endswith("*/")


def is_complete(text: str) -> bool:
    """Whether a text ends with a statement that ends."""
    if not text.strip() or command_of(text):
        return True
    if _is_open_comment(spans(text)[-1]):
        return False
    try:
        tokens = tokenize(text)
        if len(tokens) == 1:
            return True  # a comment
        if tokens[-2].kind != ";":
            return False
        last = list(split_script(text))
    except SqlParserException as error:
        # a string or comment that is open goes on in the next line; other errors are for whoever wrote them
        return "not closed" not in error.message and text.rstrip().endswith(";")
    return not last or last[-1].end < tokens[-2].end
