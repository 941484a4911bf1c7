"""Errors of expressions: those found when a statement is bound, and those of a row."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.types.logical import LocalZonedTimestampType, LogicalType, MapType, TimestampType

__all__ = ["EvaluationError", "Position", "ValidationError"]


@dataclass(frozen=True)
class Position:
    """A place in a statement; lines and columns start with 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class ValidationError(InvalidProgramError):
    """A statement that parses but has no meaning: an unknown name, or types that do not fit."""

    def __init__(self, message: str, *, position: Position | None = None, hint: str | None = None):
        super().__init__(f"{message} ({position})" if position else message, hint=hint)
        self.reason = message
        self.position = position

    def at(self, position: Position | None) -> ValidationError:
        """The same error with a place, unless it has one."""
        if self.position is not None or position is None:
            return self
        return ValidationError(self.reason, position=position, hint=self.hint)


class EvaluationError(FiresteelError):
    """A value for which an expression has no result: a division by zero, a string that is no number."""

    expression: str | None = None
    """What failed, once it is known."""
    row: str | None = None
    """The columns that the expression reads, with their values."""
    position: Position | None = None

    def at(self, expression: str, row: str, position: Position | None) -> EvaluationError:
        """The same error with the expression and the row."""
        place = f" ({position})" if position else ""
        of_row = f" for the row {row}" if row else ""
        found = EvaluationError(f"{self.message.rstrip('.')}, in {expression}{place}{of_row}.", hint=self.hint)
        found.expression, found.row, found.position = expression, row, position
        return found

    @staticmethod
    def of_column(type_: LogicalType, error: Exception) -> EvaluationError:
        """The error for values that a column cannot hold, though an expression can have them."""
        parts = [type_, *type_.children()]
        hint = None
        if any(isinstance(part, (TimestampType, LocalZonedTimestampType)) for part in parts):
            hint = "Columns of more than six digits of a second hold the years 1677 to 2262, those of six all years."
        elif any(isinstance(part, MapType) for part in parts):
            hint = "A map in a column has no key that is NULL."
        return EvaluationError(f"A column of {type_.as_summary_string()} cannot hold the result: {error}", hint=hint)
