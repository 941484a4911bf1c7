"""Comparisons and tests for NULL. The binder makes BETWEEN, IN and CASE value of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import ANY, any_nullable, check_count, mismatch, signature
from firesteel.table.functions.spark.texts import comparison
from firesteel.table.inference.common_type import common_type
from firesteel.table.inference.families import (
    is_boolean,
    is_character,
    is_constructed,
    is_datetime,
    is_null,
    is_numeric,
    is_unordered,
)
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["FUNCTIONS", "comparable_type"]

_OPERATORS = {
    "EQUALS": ("=", "==", pc.equal),
    "NOT_EQUALS": ("<>", "!=", pc.not_equal),
    "LESS_THAN": ("<", "<", pc.less),
    "LESS_THAN_OR_EQUAL": ("<=", "<=", pc.less_equal),
    "GREATER_THAN": (">", ">", pc.greater),
    "GREATER_THAN_OR_EQUAL": (">=", ">=", pc.greater_equal),
}


def comparable_type(left: LogicalType, right: LogicalType, equality: bool = False) -> LogicalType | None:
    """The type in which values of two types are compared; None if they cannot be.

    A string that meets a number, a boolean or a time is cast to the other's type; for equality, a boolean that meets a
    string is cast to a string, and a number does not meet one.
    """
    common = common_type([left, right])
    if common is not None:
        return common
    if is_character(left) != is_character(right):
        other = right if is_character(left) else left
        if is_boolean(other) and equality:
            return t.VarCharType()
        if (is_numeric(other) and not equality) or is_boolean(other) or is_datetime(other):
            return other
    return None


def _infer(name: str, symbol: str) -> Signature:
    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(symbol, arguments, 2, 2)
        left, right = (argument.type for argument in arguments)
        ordered = name not in ("EQUALS", "NOT_EQUALS", "IS_DISTINCT_FROM", "IS_NOT_DISTINCT_FROM")
        common = comparable_type(left, right, not ordered)
        if common is None or (ordered and is_unordered(common)):
            raise mismatch(symbol, arguments, f"'<COMPARABLE_TYPE> {symbol} <COMPARABLE_TYPE>'")
        if is_null(common):
            common = t.IntType()
        nullable = any_nullable(arguments) and not name.startswith("IS_")
        return Inferred((common.copy(left.nullable), common.copy(right.nullable)), t.BooleanType(nullable=nullable))

    return infer


def _vector(kernel: Callable[..., Any]) -> Callable[[Call, Session], Callable[..., Any] | None]:
    def make(call: Call, session: Session) -> Callable[..., Any] | None:
        # Arrow compares neither lists nor structs; NaN compares as in Java
        return None if is_constructed(call.arguments[0].type) else kernel

    return make


def _operator(name: str) -> FunctionDefinition:
    symbol, python, kernel = _OPERATORS[name]
    return FunctionDefinition(
        name,
        _infer(name, symbol),
        row=f"({{0}} {python} {{1}})",
        vector=PerCall(_vector(kernel)),
        spark=comparison(symbol),
        returns_null=False,
        family="comparison",
    )


def _is_distinct(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is not right
    return bool(left != right)


def _is_distinct_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    if is_constructed(call.arguments[0].type):
        return None
    negated = call.function == "IS_NOT_DISTINCT_FROM"

    def evaluate(left: Any, right: Any) -> Any:
        null_left, null_right = pc.is_null(left), pc.is_null(right)
        differs = pc.fill_null(pc.not_equal(left, right), False)
        distinct = pc.or_(differs, pc.xor(null_left, null_right))
        return pc.invert(distinct) if negated else distinct

    return evaluate


def _is_null_vector(value: Any) -> Any:
    return pc.is_null(value)


FUNCTIONS = (
    *(_operator(name) for name in _OPERATORS),
    FunctionDefinition(
        "IS_NULL",
        signature("IS NULL", ANY, returns=t.BooleanType(), nullable=False),
        row="({0} is None)",
        vector=_is_null_vector,
        spark="({0} IS NULL)",
        strict=False,
        returns_null=False,
        family="comparison",
    ),
    FunctionDefinition(
        "IS_NOT_NULL",
        signature("IS NOT NULL", ANY, returns=t.BooleanType(), nullable=False),
        row="({0} is not None)",
        vector=pc.is_valid,
        spark="({0} IS NOT NULL)",
        strict=False,
        returns_null=False,
        family="comparison",
    ),
    FunctionDefinition(
        "IS_DISTINCT_FROM",
        _infer("IS_DISTINCT_FROM", "IS DISTINCT FROM"),
        row=_is_distinct,
        vector=PerCall(_is_distinct_vector),
        spark="(NOT ({0} <=> {1}))",
        strict=False,
        returns_null=False,
        family="comparison",
    ),
    FunctionDefinition(
        "IS_NOT_DISTINCT_FROM",
        _infer("IS_NOT_DISTINCT_FROM", "IS NOT DISTINCT FROM"),
        row=lambda left, right: not _is_distinct(left, right),
        vector=PerCall(_is_distinct_vector),
        spark="({0} <=> {1})",
        strict=False,
        returns_null=False,
        family="comparison",
    ),
)
