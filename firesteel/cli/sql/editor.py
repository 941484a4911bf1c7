"""Completion and colors for the line editor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

if TYPE_CHECKING:
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples

    from firesteel.cli.sql.editing.names import Names

__all__ = ["SqlCompleter", "SqlLexer", "style_of"]


class SqlCompleter(Completer):
    """Offers what can be written at the cursor, once the names are known."""

    def __init__(self, names: Callable[[], Names | None]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The completions."""
        names = self._names()
        if names is None:
            return
        from firesteel.cli.sql.editing.completion import complete

        for found in complete(document.text_before_cursor, document.text_after_cursor, names):
            yield Completion(found.text, found.start, display_meta=found.kind)


class SqlLexer(Lexer):
    """Colors SQL, once the keywords are loaded."""

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self._is_ready = is_ready

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The styled parts of each line."""
        if not self._is_ready():
            return lambda number: [("", document.lines[number])]
        from firesteel.cli.sql.editing.highlighting import spans

        lines: list[StyleAndTextTuples] = [[]]
        for kind, text in spans(document.text):
            first, *others = text.split("\n")
            style = f"class:sql.{kind}" if kind else ""
            lines[-1].append((style, first))
            lines += [[(style, other)] for other in others]
        return lambda number: lines[number] if number < len(lines) else []

    def invalidation_hash(self) -> Any:
        """Changes when the keywords are loaded."""
        return self._is_ready()


def style_of(schema: str | None) -> Style:
    """The styles of a color schema; without one, no colors yet."""
    return Style([]) if schema is None else _style_of(schema)


@lru_cache
def _style_of(schema: str) -> Style:
    from firesteel.cli.sql.editing.highlighting import STYLES

    chosen = STYLES.get(schema, STYLES["DEFAULT"])
    return Style([(f"sql.{kind}", style) for kind, style in chosen.items() if style])
