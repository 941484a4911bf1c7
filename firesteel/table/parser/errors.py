"""The error of SQL text that cannot be parsed."""

from __future__ import annotations

__all__ = ["SqlParserException"]


class SqlParserException(Exception):
    """SQL text that is not a statement of Flink SQL.

    ``str()`` has the message, the line with a caret below the place, and the hint, if there is one. Lines and columns
    begin at 1; a column counts characters.
    """

    def __init__(
        self,
        message: str,
        sql: str = "",
        offset: int = 0,
        *,
        expected: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.sql = sql
        self.offset = min(offset, len(sql))
        self.expected = expected
        self.hint = hint
        before = sql[: self.offset]
        self.line = before.count("\n") + 1
        self.column = self.offset - before.rfind("\n")
        super().__init__(self._text())

    @property
    def excerpt(self) -> str:
        """The line of the error, and below it a caret at the column."""
        line = self.sql.split("\n")[self.line - 1].rstrip("\r")
        indent = "".join(character if character == "\t" else " " for character in line[: self.column - 1])
        return f"{line}\n{indent}^"

    def _text(self) -> str:
        parts = [f"SQL parse failed at line {self.line}, column {self.column}: {self.message}"]
        if self.sql:
            parts.append(self.excerpt)
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.message, self.sql, self.offset, self.expected, self.hint)


def _restore(message: str, sql: str, offset: int, expected: tuple[str, ...], hint: str | None) -> SqlParserException:
    return SqlParserException(message, sql, offset, expected=expected, hint=hint)
