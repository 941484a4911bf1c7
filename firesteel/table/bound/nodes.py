"""The nodes of bound expressions. They are immutable, hashable and picklable; implicit casts are explicit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from firesteel.table.bound.errors import Position
from firesteel.types.logical import LogicalType

__all__ = ["Call", "Case", "Cast", "Expression", "FieldAccess", "InputRef", "Literal", "walk"]


@dataclass(frozen=True)
class Expression:
    """A typed expression."""

    type: LogicalType
    place: Position | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where it is in its statement, if it may fail."""

    def children(self) -> tuple[Expression, ...]:
        """The operands."""
        return ()


@dataclass(frozen=True)
class Literal(Expression):
    """A constant, as rows hold it; None is NULL."""

    value: Any

    def __hash__(self) -> int:
        return hash((self.type, repr(self.value)))

    def __eq__(self, other: object) -> bool:
        # 1, 1.0, True and -0.0 differ
        return isinstance(other, Literal) and (self.type, repr(self.value)) == (other.type, repr(other.value))

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True)
class InputRef(Expression):
    """A column of the input."""

    index: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Call(Expression):
    """A call of a function; ``symbols`` are words such as the unit of EXTRACT."""

    function: str
    arguments: tuple[Expression, ...]
    symbols: tuple[str, ...] = ()
    definition: Any = field(default=None, repr=False)
    """The definition of a function of the user; built-in functions are known by name."""

    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.function}({', '.join([*self.symbols, *map(str, self.arguments)])})"


@dataclass(frozen=True)
class Cast(Expression):
    """A conversion to the node's type; a safe one makes NULL of what cannot be converted."""

    operand: Expression
    safe: bool = False

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{'TRY_CAST' if self.safe else 'CAST'}({self.operand} AS {self.type.as_summary_string()})"


@dataclass(frozen=True)
class Case(Expression):
    """The result of the first condition that is true, else the default."""

    conditions: tuple[Expression, ...]
    results: tuple[Expression, ...]
    default: Expression

    def children(self) -> tuple[Expression, ...]:
        return (*self.conditions, *self.results, self.default)

    def __str__(self) -> str:
        parts = [f"WHEN {test} THEN {result}" for test, result in zip(self.conditions, self.results, strict=True)]
        return f"CASE {' '.join(parts)} ELSE {self.default} END"


@dataclass(frozen=True)
class FieldAccess(Expression):
    """A field of a row."""

    operand: Expression
    index: int

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        fields = getattr(self.operand.type, "field_names", ())
        return f"{self.operand}.{fields[self.index]}"


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all expressions in it."""
    yield expression
    for child in expression.children():
        yield from walk(child)
