"""Expressions of drawn queries: their text in SQL and their value in plain Python, with SQL's null."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "INT",
    "NUMBERS",
    "STAMP",
    "STRING",
    "TIME",
    "Column",
    "Const",
    "Expression",
    "Field",
    "Op",
    "draw_condition",
    "draw_expression",
    "truncated",
]

BIGINT, INT, STRING, BOOLEAN = "BIGINT", "INT", "STRING", "BOOLEAN"
TIME, STAMP = "TIME", "STAMP"
"""A time attribute, and another timestamp; in milliseconds."""
NUMBERS = (INT, BIGINT)


@dataclass(frozen=True)
class Column:
    """A column of a relation."""

    name: str
    type: str


class Expression(Protocol):
    """A part of a query that has a value for each row."""

    @property
    def type(self) -> str:
        """Its type."""
        ...

    def sql(self) -> str:
        """Its text."""
        ...

    def value(self, row: Mapping[str, Any]) -> Any:
        """Its value; None is null."""
        ...


@dataclass(frozen=True)
class Field:
    """The value of a column."""

    name: str
    type: str

    def sql(self) -> str:
        """The name of the column."""
        return self.name

    def value(self, row: Mapping[str, Any]) -> Any:
        """What the row has."""
        return row[self.name]


@dataclass(frozen=True)
class Const:
    """A literal."""

    content: Any
    type: str

    def sql(self) -> str:
        """The literal."""
        if self.content is None:
            return f"CAST(NULL AS {self.type})"
        return f"'{self.content}'" if self.type == STRING else str(self.content).upper()

    def value(self, row: Mapping[str, Any]) -> Any:
        """Itself."""
        return self.content


@dataclass(frozen=True)
class Op:
    """A call of a function or an operator."""

    name: str
    operands: tuple[Any, ...]
    type: str

    def sql(self) -> str:
        """The call."""
        return _OPS[self.name][0].format(*(operand.sql() for operand in self.operands))

    def value(self, row: Mapping[str, Any]) -> Any:
        """The result."""
        _, function, is_strict = _OPS[self.name]
        values = [operand.value(row) for operand in self.operands]
        return None if is_strict and None in values else function(*values)


def truncated(dividend: int, divisor: int) -> int:
    """The quotient, rounded towards zero.

    >>> truncated(-7, 2), truncated(7, 2)
    (-3, 3)
    """
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _modulo(dividend: int, divisor: int) -> int:
    return dividend - divisor * truncated(dividend, divisor)


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _in(value: Any, *options: Any) -> bool | None:
    if value is None:
        return None
    return True if value in options else (None if None in options else False)


_OPS: dict[str, tuple[str, Callable[..., Any], bool]] = {
    "add": ("({} + {})", lambda a, b: a + b, True),
    "subtract": ("({} - {})", lambda a, b: a - b, True),
    "triple": ("({} * 3)", lambda a: a * 3, True),
    "modulo": ("MOD({}, 5)", lambda a: _modulo(a, 5), True),
    "half": ("({} / 2)", lambda a: truncated(a, 2), True),
    "abs": ("ABS({})", abs, True),
    "negate": ("(- {})", lambda a: -a, True),
    "as_bigint": ("CAST({} AS BIGINT)", lambda a: a, True),
    "as_string": ("CAST({} AS STRING)", str, True),
    "upper": ("UPPER({})", str.upper, True),
    "concat": ("({} || {})", lambda a, b: a + b, True),
    "tail": ("SUBSTRING({}, 2)", lambda a: a[1:], True),
    "length": ("CHAR_LENGTH({})", len, True),
    "coalesce": ("COALESCE({}, {})", lambda a, b: b if a is None else a, False),
    "nullif": ("NULLIF({}, {})", lambda a, b: None if a is not None and a == b else a, False),
    "case": ("CASE WHEN {} THEN {} ELSE {} END", lambda test, a, b: a if test else b, False),
    "equal": ("({} = {})", lambda a, b: a == b, True),
    "unequal": ("({} <> {})", lambda a, b: a != b, True),
    "less": ("({} < {})", lambda a, b: a < b, True),
    "at_least": ("({} >= {})", lambda a, b: a >= b, True),
    "is_null": ("({} IS NULL)", lambda a: a is None, False),
    "is_true": ("({} IS TRUE)", lambda a: a is True, False),
    "and": ("({} AND {})", _and, False),
    "or": ("({} OR {})", _or, False),
    "not": ("(NOT {})", lambda a: not a, True),
    "in": ("({} IN ({}, {}))", _in, False),
    "like": ("({} LIKE 'a%')", lambda a: a.startswith("a"), True),
}

_TEXTS = ("a", "b", "B", "", "abc", "öl")


def _fields(columns: Sequence[Column], types: Sequence[str]) -> list[Expression]:
    return [Field(column.name, column.type) for column in columns if column.type in types]


def draw_number(rng: random.Random, columns: Sequence[Column], depth: int = 1) -> Expression:
    """Draws an integer."""
    fields = _fields(columns, NUMBERS)
    if not fields or rng.random() < 0.1:
        return Const(rng.choice((0, 1, 2, 7)), INT)
    first = rng.choice(fields)
    if depth == 0 or rng.random() < 0.3:
        return first
    name = rng.choice(
        (
            "add",
            "subtract",
            "triple",
            "modulo",
            "half",
            "abs",
            "negate",
            "as_bigint",
            "coalesce",
            "nullif",
            "case",
            "length",
        )
    )
    if name in ("triple", "modulo", "half", "abs", "negate"):
        inner = draw_number(rng, columns, depth - 1)
        return Op(name, (inner,), inner.type)
    if name == "as_bigint":
        return Op(name, (first,), BIGINT)
    if name == "length":
        texts = _fields(columns, (STRING,))
        return Op(name, (rng.choice(texts),), INT) if texts else first
    second = draw_number(rng, columns, depth - 1)
    kind = BIGINT if BIGINT in (first.type, second.type) else INT
    if name == "case":
        return Op(name, (draw_condition(rng, columns, 0), first, second), kind)
    return Op(name, (first, second), first.type if name == "nullif" else kind)


def draw_text(rng: random.Random, columns: Sequence[Column]) -> Expression:
    """Draws a string."""
    fields = _fields(columns, (STRING,))
    numbers = _fields(columns, NUMBERS)
    if numbers and (not fields or rng.random() < 0.2):
        return Op("as_string", (rng.choice(numbers),), STRING)
    first: Expression = rng.choice(fields) if fields else Const(rng.choice(_TEXTS), STRING)
    name = rng.choice(("", "upper", "concat", "tail", "coalesce", "nullif"))
    if name in ("upper", "tail"):
        return Op(name, (first,), STRING)
    if name:
        return Op(name, (first, Const(rng.choice(_TEXTS), STRING)), STRING)
    return first


def draw_expression(rng: random.Random, columns: Sequence[Column]) -> Expression:
    """Draws a number or a string."""
    return draw_text(rng, columns) if rng.random() < 0.3 else draw_number(rng, columns, 2)


def draw_condition(rng: random.Random, columns: Sequence[Column], depth: int = 1) -> Expression:
    """Draws what is true, false or unknown."""
    name = rng.choice(("equal", "unequal", "less", "at_least", "is_null", "in", "like", "and", "or", "not", "is_true"))
    texts = _fields(columns, (STRING,))
    if name == "like":
        if texts:
            return Op(name, (rng.choice(texts),), BOOLEAN)
        name = "less"
    if name in ("and", "or", "not", "is_true"):
        if depth > 0:
            parts = 1 if name in ("not", "is_true") else 2
            return Op(name, tuple(draw_condition(rng, columns, depth - 1) for _ in range(parts)), BOOLEAN)
        name = "at_least"
    if name == "is_null":
        return Op(name, (rng.choice(_fields(columns, (*NUMBERS, STRING)) or [Const(None, INT)]),), BOOLEAN)
    if name in ("equal", "unequal", "in") and texts and rng.random() < 0.3:
        options = tuple(Const(rng.choice(_TEXTS), STRING) for _ in range(2 if name == "in" else 1))
        return Op(name, (rng.choice(texts), *options), BOOLEAN)
    first = draw_number(rng, columns, 1)
    others = tuple(
        Const(rng.choice((0, 1, 2, 3, 5, 30, 100_010)), INT) if rng.random() < 0.6 else draw_number(rng, columns, 0)
        for _ in range(2 if name == "in" else 1)
    )
    return Op(name, (first, *others), BOOLEAN)
