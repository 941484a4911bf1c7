"""Functions of the type BITMAP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.functions.definition import FunctionDefinition
from firesteel.table.functions.signatures import BINARY, BITMAP, Parameter, signature
from firesteel.table.values.bitmap import (
    BitmapError,
    bitmap_array,
    bitmap_cardinality,
    bitmap_text,
    dump_bitmap,
    from_bytes,
    from_integers,
    load_bitmap,
)
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["FUNCTIONS"]


_NARROW = (t.TinyIntType, t.SmallIntType, t.IntType)
_INTEGERS = Parameter(
    "<ARRAY<INT>>",
    lambda type_: isinstance(type_, t.ArrayType) and isinstance(type_.element_type, _NARROW),
    t.ArrayType(t.IntType()),
    t.ArrayType(t.IntType()),
)


def _define(
    name: str,
    *parameters: Parameter,
    returns: LogicalType,
    row: Callable[..., Any],
    takes_null: bool = False,
    can_fail: bool = False,
) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        signature(name, *parameters, returns=returns, takes_null=takes_null),
        row=row,
        returns_null=False,
        can_fail=can_fail,
        family="bitmap",
    )


def _combined(combine: Callable[[Any, Any], Any]) -> Callable[[bytes, bytes], bytes]:
    return lambda left, right: dump_bitmap(combine(load_bitmap(left), load_bitmap(right)))


def _read(data: bytes) -> bytes:
    try:
        return from_bytes(data)
    except BitmapError as error:
        raise EvaluationError(f"{error}: {error.__cause__}.") from error


def _binary(name: str, combine: Callable[[Any, Any], Any]) -> FunctionDefinition:
    return _define(name, BITMAP, BITMAP, returns=t.BitmapType(), row=_combined(combine))


FUNCTIONS = (
    _define("BITMAP_BUILD", _INTEGERS, returns=t.BitmapType(), row=from_integers, takes_null=True),
    _define("BITMAP_CARDINALITY", BITMAP, returns=t.BigIntType(), row=bitmap_cardinality),
    _define("BITMAP_FROM_BYTES", BINARY, returns=t.BitmapType(), row=_read, can_fail=True, takes_null=True),
    _define("BITMAP_TO_ARRAY", BITMAP, returns=t.ArrayType(t.IntType()), row=bitmap_array),
    _define("BITMAP_TO_BYTES", BITMAP, returns=t.VarBinaryType(), row=bytes),
    _define("BITMAP_TO_STRING", BITMAP, returns=t.VarCharType(), row=bitmap_text),
    _binary("BITMAP_AND", lambda left, right: left & right),
    _binary("BITMAP_ANDNOT", lambda left, right: left - right),
    _binary("BITMAP_OR", lambda left, right: left | right),
    _binary("BITMAP_XOR", lambda left, right: left ^ right),
)
