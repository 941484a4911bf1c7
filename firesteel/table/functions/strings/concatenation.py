"""The operator ||."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall
from firesteel.table.functions.signatures import any_nullable, check_count, illegal_null, mismatch
from firesteel.table.inference.families import is_character, is_null
from firesteel.types import logical as t
from firesteel.types.logical import MAX_LENGTH

__all__ = ["FUNCTIONS"]


def _infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    """CHAR with CHAR is CHAR of the sum of the lengths, others VARCHAR."""
    check_count("||", arguments, 2, 2)
    types = [argument.type for argument in arguments]
    if any(map(is_null, types)):
        raise illegal_null()
    length = min(MAX_LENGTH, sum(getattr(type_, "length", 0) for type_ in types))
    nullable = any_nullable(arguments)
    if all(map(is_character, types)):
        fixed = all(isinstance(type_, t.CharType) for type_ in types)
        return Inferred(tuple(types), (t.CharType if fixed else t.VarCharType)(length, nullable=nullable))
    raise mismatch("||", arguments, "'<STRING> || <STRING>'")


def _vector(call: Call, session: Session) -> Callable[..., Any]:
    return lambda left, right: pc.binary_join_element_wise(left, right, "")


FUNCTIONS = (
    FunctionDefinition(
        "||",
        _infer,
        row="({0} + {1})",
        vector=PerCall(_vector),
        spark="({0} || {1})",
        returns_null=False,
        family="string",
    ),
)
