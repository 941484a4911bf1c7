"""Hints for tables, joins and state, read from the nodes of a query."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from firesteel.table.parser.errors import SqlParserException
from firesteel.table.parser.nodes import HintCall, offset_of
from firesteel.table.parser.statements.base import Options

__all__ = ["Hint", "hints_of_query", "hints_of_table", "table_options"]


@dataclass(frozen=True)
class Hint:
    """A hint: its name in capitals, and options or arguments."""

    name: str
    options: Options = ()
    arguments: tuple[str, ...] = ()
    offset: int = 0

    def option_map(self) -> dict[str, str]:
        """The options by key; of equal keys the last one counts."""
        return dict(self.options)


def _read(node: HintCall) -> Hint:
    arguments = tuple(argument.name for argument in node.expressions)
    return Hint(node.name.upper(), node.args.get("options") or (), arguments, offset_of(node))


def hints_of_query(select: exp.Select) -> tuple[Hint, ...]:
    """The hints after SELECT."""
    hint = select.args.get("hint")
    return () if hint is None else tuple(_read(node) for node in hint.expressions)


def hints_of_table(table: exp.Table) -> tuple[Hint, ...]:
    """The hints after the name of a table."""
    return tuple(_read(node) for node in table.args.get("hints") or ())


def table_options(hints: tuple[Hint, ...], sql: str = "") -> dict[str, str]:
    """The options that OPTIONS hints give a table; ``sql`` is the text for errors."""
    options: dict[str, str] = {}
    for hint in hints:
        if hint.name != "OPTIONS":
            raise SqlParserException(
                f"A table cannot have the hint {hint.name}.", sql, hint.offset, expected=("OPTIONS",)
            )
        if hint.arguments:
            raise SqlParserException("OPTIONS has keys and values: OPTIONS('key' = 'value').", sql, hint.offset)
        options.update(hint.options)
    return options
