"""Type inference of functions in terms of parameters: what a parameter takes, and the type of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.functions.definition import Inferred, Signature
from firesteel.table.inference import families
from firesteel.table.inference.common_type import common_type
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = [
    "ANY",
    "ARRAY",
    "BINARY",
    "BITMAP",
    "BOOLEAN",
    "CHARACTER",
    "DATETIME",
    "DATE_OR_TIMESTAMP",
    "INTEGER",
    "INTERVAL",
    "MAP",
    "NUMERIC",
    "STRING_OR_BINARY",
    "Parameter",
    "all_nullable",
    "any_nullable",
    "check_count",
    "common_arguments",
    "illegal_null",
    "mismatch",
    "signature",
    "types_text",
]

Result = LogicalType | Callable[[Sequence[Expression]], LogicalType]


@dataclass(frozen=True)
class Parameter:
    """What one argument may be."""

    description: str
    accepts: Callable[[LogicalType], bool]
    for_null: LogicalType
    """The type that a NULL without a type becomes."""
    target: LogicalType | None = None
    """The type to which arguments are cast, if not left as they are."""

    def cast_type(self, type_: LogicalType) -> LogicalType | None:
        """The type to which an argument is cast; None if it is not accepted."""
        if families.is_null(type_):
            return self.for_null
        if not self.accepts(type_):
            return None
        return type_ if self.target is None else self.target.copy(type_.nullable)

    def cast_to(self, type_: LogicalType) -> Parameter:
        """The same parameter, with arguments cast to a type."""
        return Parameter(self.description, self.accepts, type_, type_)


CHARACTER = Parameter("<CHARACTER>", families.is_character, t.VarCharType())
BINARY = Parameter("<BINARY>", families.is_binary, t.VarBinaryType())
BITMAP = Parameter("<BITMAP>", families.is_bitmap, t.BitmapType())
STRING_OR_BINARY = Parameter("<CHARACTER> or <BINARY>", families.is_string, t.VarCharType())
INTEGER = Parameter("<INTEGER>", families.is_integer, t.IntType())
NUMERIC = Parameter("<NUMERIC>", families.is_numeric, t.IntType())
BOOLEAN = Parameter("<BOOLEAN>", families.is_boolean, t.BooleanType())
DATETIME = Parameter("<DATETIME>", families.is_datetime, t.TimestampType(3))
DATE_OR_TIMESTAMP = Parameter(
    "<DATE> or <TIMESTAMP>",
    lambda type_: families.is_timestamp(type_) or isinstance(type_, t.DateType),
    t.TimestampType(3),
)
INTERVAL = Parameter("<INTERVAL>", families.is_interval, t.DayTimeIntervalType())
ARRAY = Parameter("<ARRAY>", lambda type_: isinstance(type_, t.ArrayType), t.ArrayType(t.IntType()))
MAP = Parameter("<MAP>", lambda type_: isinstance(type_, t.MapType), t.MapType(t.IntType(), t.IntType()))
ANY = Parameter("<ANY>", lambda _: True, t.IntType())


def types_text(arguments: Sequence[Expression]) -> str:
    """The types of arguments, for messages."""
    return ", ".join(argument.type.as_summary_string() for argument in arguments)


def mismatch(name: str, arguments: Sequence[Expression], expected: str) -> ValidationError:
    """The error for arguments that do not fit a function."""
    return ValidationError(
        f"Cannot apply '{name}' to arguments of type '{name}({types_text(arguments)})'.",
        hint=f"Supported form: {expected}",
    )


def illegal_null() -> ValidationError:
    """The error for a NULL without a type."""
    return ValidationError("Illegal use of 'NULL'.", hint="Give it a type: CAST(NULL AS INT).")


def check_count(name: str, arguments: Sequence[Expression], low: int, high: int | None) -> None:
    """Raises ValidationError if there are too few or too many arguments."""
    count = len(arguments)
    if count < low or (high is not None and count > high):
        expected = str(low) if low == high else f"{low} or more" if high is None else f"{low} to {high}"
        raise ValidationError(
            f"Invalid number of arguments to function '{name}': was expecting {expected} arguments, got {count}."
        )


def any_nullable(arguments: Sequence[Expression]) -> bool:
    """Whether one of the arguments may be NULL."""
    return any(argument.type.nullable for argument in arguments)


def all_nullable(arguments: Sequence[Expression]) -> bool:
    """Whether all of the arguments may be NULL."""
    return all(argument.type.nullable for argument in arguments)


def signature(
    name: str,
    *parameters: Parameter,
    returns: Result,
    optional: int = 0,
    varargs: Parameter | None = None,
    nullable: bool | None = None,
    takes_null: bool = False,
) -> Signature:
    """The signature of a function with some parameters, the last of them optional.

    The result may be NULL if an argument may, unless ``nullable`` says otherwise. A NULL without a type is refused,
    unless the function takes it.
    """
    shown = ", ".join([p.description for p in parameters] + ([f"{varargs.description}*"] if varargs else []))

    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, len(parameters) - optional, None if varargs else len(parameters))
        padded = [*parameters, *([varargs] * (len(arguments) - len(parameters)))] if varargs else parameters
        targets = []
        for argument, parameter in zip(arguments, padded, strict=False):
            if not takes_null and families.is_null(argument.type):
                raise illegal_null()
            target = parameter.cast_type(argument.type)
            if target is None:
                raise mismatch(name, arguments, f"'{name}({shown})'")
            targets.append(target)
        result = returns if isinstance(returns, LogicalType) else returns(arguments)
        can_be_null = any_nullable(arguments) if nullable is None else nullable
        return Inferred(tuple(targets), result.copy(can_be_null))

    return infer


def common_arguments(name: str, arguments: Sequence[Expression]) -> LogicalType:
    """The type to which all arguments are cast."""
    found = common_type([argument.type for argument in arguments])
    if found is None:
        raise mismatch(name, arguments, f"'{name}' with arguments of one common type")
    return found
