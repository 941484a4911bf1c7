"""Functions that choose among values, and tests of strings; COALESCE, IF and their like are CASE, see the binder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import (
    ANY,
    BOOLEAN,
    any_nullable,
    check_count,
    common_arguments,
    illegal_null,
    mismatch,
    signature,
)
from firesteel.table.inference.families import is_character, is_constructed, is_exact, is_null, is_numeric, is_unordered
from firesteel.table.values.numbers import parse_double
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]


def _extreme(name: str) -> Signature:
    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, 1, None)
        if any(is_null(argument.type) for argument in arguments):
            raise illegal_null()
        common = common_arguments(name, arguments)
        if is_unordered(common) or is_null(common):
            raise mismatch(name, arguments, f"'{name}(<COMPARABLE_TYPE>, …)'")
        return Inferred((common,) * len(arguments), common.copy(any_nullable(arguments)))

    return infer


def _extreme_vector(kernel: Callable[..., Any]) -> Callable[[Call, Session], Callable[..., Any] | None]:
    def make(call: Call, session: Session) -> Callable[..., Any] | None:
        if not (is_exact(call.type) or isinstance(call.type, (t.DateType, t.TimestampType))):
            return None
        if any(isinstance(argument, Literal) and argument.value is None for argument in call.arguments):
            return None
        return lambda *arrays: kernel(*arrays, skip_nulls=False)

    return make


def _infer_in(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    mixed = {is_character(argument.type) for argument in arguments}
    numbers = all(is_character(argument.type) or is_numeric(argument.type) for argument in arguments)
    common = t.VarCharType() if len(mixed) == 2 and numbers else common_arguments("IN", arguments)
    types = tuple(common.copy(argument.type.nullable) for argument in arguments)
    return Inferred(types, t.BooleanType(nullable=any_nullable(arguments)))


def _in(call: Call, session: Session) -> Any:
    if all(isinstance(argument, Literal) for argument in call.arguments[1:]):
        values = [argument.value for argument in call.arguments[1:]]  # type: ignore[attr-defined]
        otherwise = None if None in values else False
        if not is_constructed(call.arguments[0].type):
            known = frozenset(value for value in values if value is not None)
            return lambda value, *_: None if value is None else True if value in known else otherwise
    return _in_list


def _in_list(value: Any, *values: Any) -> bool | None:
    if value is None:
        return None
    if any(other is not None and other == value for other in values):
        return True
    return None if None in values else False


def _in_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    constants = call.arguments[1:]
    if is_constructed(call.arguments[0].type) or isinstance(call.arguments[0].type, t.DecimalType):
        return None
    if any(not isinstance(argument, Literal) or argument.value is None for argument in constants):
        return None

    def evaluate(value: Any, *scalars: Any) -> Any:
        import pyarrow as pa

        found = pc.is_in(value, value_set=pa.array([scalar.as_py() for scalar in scalars], scalars[0].type))
        return pc.if_else(pc.is_valid(value), found, None)

    return evaluate


def _is_number(text: str) -> bool:
    try:
        parse_double(text)
    except ValueError:
        return False
    return True


def _tested(test: Callable[[str], bool], numbers: bool) -> Callable[[Call, Session], Callable[[Any], bool]]:
    """A test of strings, which holds for all numbers or for none."""

    def make(call: Call, session: Session) -> Callable[[Any], bool]:
        if is_character(call.arguments[0].type):
            return lambda value: value is not None and test(value)
        return lambda _: numbers

    return make


def _test(name: str, test: Callable[[str], bool], numbers: bool) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        signature(name, ANY, returns=t.BooleanType(), nullable=False),
        row=PerCall(_tested(test, numbers)),
        strict=False,
        returns_null=False,
        family="conditional",
    )


def _type_text(call: Call, session: Session) -> Callable[..., str]:
    type_ = call.arguments[0].type
    text, full = type_.as_summary_string(), type_.as_summary_string()
    if isinstance(type_, (t.VarCharType, t.VarBinaryType)):  # without the short names
        full = f"{type_.root.value}({type_.length}){'' if type_.nullable else ' NOT NULL'}"
    return lambda _, is_full=False: full if is_full else text


def _infer_typeof(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("TYPEOF", arguments, 1, 2)
    if len(arguments) > 1 and BOOLEAN.cast_type(arguments[1].type) is None:
        raise mismatch("TYPEOF", arguments, "'TYPEOF(<ANY>, <BOOLEAN>)'")
    return Inferred(tuple(argument.type for argument in arguments), t.VarCharType())


FUNCTIONS = (
    FunctionDefinition(
        "GREATEST",
        _extreme("GREATEST"),
        row=lambda *values: max(values),
        vector=PerCall(_extreme_vector(pc.max_element_wise)),
        family="conditional",
    ),
    FunctionDefinition(
        "LEAST",
        _extreme("LEAST"),
        row=lambda *values: min(values),
        vector=PerCall(_extreme_vector(pc.min_element_wise)),
        family="conditional",
    ),
    FunctionDefinition(
        "IN",
        _infer_in,
        row=PerCall(_in),
        vector=PerCall(_in_vector),
        spark=lambda call, arguments: f"({arguments[0]} IN ({', '.join(arguments[1:])}))",
        strict=False,
        family="comparison",
    ),
    _test("IS_ALPHA", str.isalpha, numbers=False),
    _test("IS_DECIMAL", _is_number, numbers=True),
    _test("IS_DIGIT", str.isdigit, numbers=True),
    FunctionDefinition(
        "CURRENT_DATABASE",
        signature("CURRENT_DATABASE", returns=t.VarCharType(), nullable=False),
        row=PerCall(lambda call, session: lambda: session.current_database),
        returns_null=False,
        family="catalog",
    ),
    FunctionDefinition("TYPEOF", _infer_typeof, row=PerCall(_type_text), strict=False, family="conversion"),
)
