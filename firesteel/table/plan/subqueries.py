"""Expressions that contain a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from firesteel.table.bound.errors import Position
from firesteel.table.bound.nodes import Expression
from firesteel.table.plan.nodes import Join, JoinKind, LogicalNode, TwoInputs
from firesteel.types.logical import RowType

__all__ = ["Exists", "InSubquery", "LateralJoin", "OuterRef", "ScalarSubquery", "Subquery"]


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
    position: Position | None = field(default=None, compare=False, kw_only=True)
    """Where it is in the statement."""

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


@dataclass(frozen=True)
class LateralJoin(TwoInputs):
    """Rows beside those of a query that names their columns: ``right`` refers to columns of ``left`` by OuterRef."""

    kind: JoinKind
    """INNER or LEFT."""
    condition: Expression
    position: Position | None = field(default=None, compare=False, kw_only=True)

    @cached_property
    def _type(self) -> RowType:
        return Join(self.left, self.right, self.kind, self.condition).row_type

    def describe(self) -> str:
        return f"Correlate(joinType=[{self.kind.value}], condition=[{self.condition}])"
