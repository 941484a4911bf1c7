"""Functions of the position of a row in a window; they have no accumulator."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.bound.nodes import Expression
from firesteel.table.functions.aggregates.body import define
from firesteel.table.functions.definition import FunctionDefinition, Inferred, Signature
from firesteel.table.functions.signatures import INTEGER, check_count, illegal_null, mismatch, signature
from firesteel.table.inference.common_type import common_type
from firesteel.table.inference.families import is_character, is_integer, is_null
from firesteel.types import logical as t

__all__ = ["RANKING"]

_BIGINT = t.BigIntType()


def _rank(name: str) -> FunctionDefinition:
    return define(name, signature(name, returns=_BIGINT, nullable=False), None)


def _shifted(name: str) -> Signature:
    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, 1, 3)
        if len(arguments) > 1 and not is_integer(arguments[1].type):
            raise mismatch(name, arguments, f"'{name}(<ANY>, <INTEGER>, <ANY>)'")
        if len(arguments) > 2:
            _check_default(name, arguments)
        types = tuple(argument.type for argument in arguments)
        default = arguments[2].type.nullable if len(arguments) > 2 else True
        return Inferred((*types[:2], *(types[0] for _ in types[2:])), types[0].copy(default))

    return infer


def _check_default(name: str, arguments: Sequence[Expression]) -> None:
    value, default = arguments[0].type, arguments[2].type
    if is_null(default):
        raise illegal_null()
    if not is_character(default) and not is_character(value) and common_type([value, default]) is None:
        raise mismatch(name, arguments, f"'{name}(<ANY>)'")


RANKING = (
    _rank("ROW_NUMBER"),
    _rank("RANK"),
    _rank("DENSE_RANK"),
    define("NTILE", signature("NTILE", INTEGER, returns=_BIGINT, nullable=False), None),
    define("CUME_DIST", signature("CUME_DIST", returns=t.DoubleType(), nullable=False), None),
    define("PERCENT_RANK", signature("PERCENT_RANK", returns=t.DoubleType(), nullable=False), None),
    define("LEAD", _shifted("LEAD"), None),
    define("LAG", _shifted("LAG"), None),
)
