"""What a function is: its name, its type inference, and its bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.types.logical import LogicalType

__all__ = ["FunctionDefinition", "FunctionKind", "Inferred", "PerCall", "Signature"]


class FunctionKind(Enum):
    """What a function is applied to."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    TABLE = "table"
    TABLE_AGGREGATE = "table aggregate"
    PROCESS_TABLE = "process table"


@dataclass(frozen=True)
class Inferred:
    """The types to which arguments are cast, and the type of the result."""

    arguments: tuple[LogicalType, ...]
    result: LogicalType


Signature = Callable[[Sequence[Expression], tuple[str, ...]], Inferred]
"""Infers types from bound arguments and symbols; raises ValidationError."""


@dataclass(frozen=True)
class PerCall:
    """A body that depends on the types, literals or symbols of a call."""

    make: Callable[[Call, Session], Any]


@dataclass(frozen=True)
class FunctionDefinition:
    """A built-in function."""

    name: str
    signature: Signature
    row: Callable[..., Any] | str | PerCall | None = None
    """A callable, or the text of an expression with {0}, {1}, … for the arguments and {v} for a variable of its own."""
    vector: Callable[..., Any] | PerCall | None = None
    """A callable over arrays of pyarrow, some of which may be scalars; without it the row body runs in a loop."""
    batch: PerCall | None = None
    """Makes a kernel that gets the number of rows, and each argument as an array or, of a constant, as a scalar."""
    spark: str | Callable[[Call, Sequence[str]], str | None] | None = None
    """Spark SQL with {0}, {1}, …, or what makes it of a call and the text of its arguments."""
    strict: bool = True
    """Whether the result is NULL if an argument is, without a call of the body."""
    returns_null: bool = True
    """Whether the result may be NULL although no argument is."""
    can_fail: bool = False
    """Whether there are arguments for which the body raises EvaluationError."""
    is_deterministic: bool = True
    is_foldable: bool = True
    """Whether a call with constants is evaluated when it is planned."""
    merges: bool = True
    """Whether accumulators of an aggregate function can be merged."""
    kind: FunctionKind = FunctionKind.SCALAR
    family: str = ""

    def row_body(self, call: Call, session: Session) -> Callable[..., Any] | str | None:
        """The row body for a call."""
        return self.row.make(call, session) if isinstance(self.row, PerCall) else self.row

    def vector_body(self, call: Call, session: Session) -> Callable[..., Any] | None:
        """The vector body for a call, if there is one for its types."""
        return self.vector.make(call, session) if isinstance(self.vector, PerCall) else self.vector

    def spark_text(self, call: Call, arguments: Sequence[str]) -> str | None:
        """The call in Spark SQL, if Spark can express it."""
        if isinstance(self.spark, str):
            return self.spark.format(*arguments)
        return None if self.spark is None else self.spark(call, arguments)
