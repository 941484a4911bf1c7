"""Expressions that contain a query."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.expressions.nodes import Expression
from firesteel.table.plan.nodes import LogicalNode

__all__ = ["Exists", "InSubquery", "OuterRef", "ScalarSubquery", "Subquery"]


@dataclass(frozen=True)
class OuterRef(Expression):
    """A column of the query around a subquery; ``depth`` is 1 for the next one."""

    depth: int
    index: int
    name: str

    def __str__(self) -> str:
        return f"outer({self.name})"


@dataclass(frozen=True)
class Subquery(Expression):
    """A query in an expression."""

    query: LogicalNode

    @property
    def word(self) -> str:
        """What EXPLAIN calls it."""
        raise NotImplementedError

    def __str__(self) -> str:
        operands = "".join(f"{operand}, " for operand in self.children())
        return f"{self.word}({operands}{{{self.query.explain()}}})"


@dataclass(frozen=True)
class ScalarSubquery(Subquery):
    """The only value of a query; null if it has no rows."""

    @property
    def word(self) -> str:
        return "SCALAR"


@dataclass(frozen=True)
class Exists(Subquery):
    """Whether a query has rows."""

    @property
    def word(self) -> str:
        return "EXISTS"


@dataclass(frozen=True)
class InSubquery(Subquery):
    """Whether a query has a row with these values."""

    operands: tuple[Expression, ...]

    @property
    def word(self) -> str:
        return "IN"

    def children(self) -> tuple[Expression, ...]:
        return self.operands
