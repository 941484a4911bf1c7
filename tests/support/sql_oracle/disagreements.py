"""Statements on which Firesteel's parser and Flink's differ, each with the reason."""

from __future__ import annotations

import re

__all__ = ["DISAGREEMENTS", "reason_of"]

DISAGREEMENTS: tuple[tuple[str, str], ...] = (
    # accepted by Firesteel only
    (r"(SET|RESET) [A-Za-z]", "Flink reads SET and RESET without quotes in another parser, before this one."),
    (r"\( SELECT \*", "Flink reads SELECT as an argument without parentheses, but not SELECT *."),
    (r"\w\$\w", "Flink reads t.a$b as the name of a collation."),
    (r"JSON_ARRAY ?\( ?NULL ON NULL", "Flink reads NULL as the first element."),
    (r"\{(d|t|ts) ", "Flink checks the text of these literals in the parser; Firesteel does when it binds them."),
    (r"BETWEEN .* AND .*NOT|LIKE .*(NOT|BETWEEN)", "Flink cannot read NOT or BETWEEN as operands of these operators."),
    # accepted by Flink's parser only; its validator or planner rejects them
    (r"TRIM ?\( ?\)", "TRIM without arguments."),
    (r"MAP ?\( ?\*", "MAP as the name of a function of all columns."),
    (r"\( \w+ LIMIT|\( \w+ OFFSET|\( \w+ FETCH", "LIMIT after an expression."),
    (r"(INTO|FROM|JOIN|,) [\w. ]+\( [\w.` ]+ [\w.]+", "Columns with types after the name of a table (EXTEND)."),
    (r"ROW ?[<(] ,", "A comma before the first field."),
    (r"X'", "A binary string with an odd number of digits."),
    (r"MERGE|ALTER (SESSION|SYSTEM)", "Statements that Flink does not run."),
)
"""Patterns of statements, and why the parsers differ."""


def reason_of(statement: str) -> str | None:
    """The reason why the parsers differ on a statement, if it is known."""
    return next((reason for pattern, reason in DISAGREEMENTS if re.search(pattern, statement)), None)
