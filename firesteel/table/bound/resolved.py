"""Expressions of schemas: bound, with the SQL text from which they were made."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.bound.nodes import Expression
from firesteel.types.logical import LogicalType

__all__ = ["ResolvedExpression"]


@dataclass(frozen=True)
class ResolvedExpression:
    """An expression of a computed column or a watermark, bound over the columns of its table."""

    bound: Expression
    sql: str

    def get_output_data_type(self) -> LogicalType:
        """The type of its values."""
        return self.bound.type

    def as_summary_string(self) -> str:
        """The expression as SQL."""
        return self.sql

    def as_serializable_string(self) -> str:
        """The expression as SQL."""
        return self.sql

    def __str__(self) -> str:
        return self.sql
