"""Functions of users as definitions that plans call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.casts.implicit import supports_implicit_cast
from firesteel.table.functions.definition import FunctionDefinition, FunctionKind, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import types_text
from firesteel.table.inference.families import is_null
from firesteel.table.parser import parse_type
from firesteel.table.parser.types import to_logical_type
from firesteel.table.user_functions import scalar
from firesteel.table.user_functions.aggregates import aggregate_body, supports_merge
from firesteel.table.user_functions.process import UserDefinedProcessTableFunctionWrapper
from firesteel.table.user_functions.tables import table_kernel
from firesteel.table.user_functions.wrappers import (
    UserDefinedAggregateFunctionWrapper,
    UserDefinedAsyncScalarFunctionWrapper,
    UserDefinedFunctionWrapper,
    UserDefinedScalarFunctionWrapper,
    UserDefinedTableFunctionWrapper,
)
from firesteel.types.logical import ArrayType, LogicalType, RowField, RowType

__all__ = ["UserFunction", "definition_of_wrapper", "logical_type"]


@dataclass(frozen=True, eq=False)
class UserFunction(FunctionDefinition):
    """A function of a user. Each registration is a function of its own."""

    wrapper: Any = None
    takes_row: bool = False
    columns: RowType | None = None
    """The columns that a table function makes."""

    def __repr__(self) -> str:
        return f"UserFunction({self.name!r})"


def logical_type(type_: LogicalType | str) -> LogicalType:
    """A type, or what its SQL text stands for."""
    return type_ if isinstance(type_, LogicalType) else to_logical_type(parse_type(type_), type_)


def definition_of_wrapper(wrapper: UserDefinedFunctionWrapper, name: str | None = None) -> UserFunction:
    """The definition of a function under a name, or its own."""
    known = name or wrapper._name
    common: dict[str, Any] = {
        "strict": False,
        "can_fail": True,
        "is_deterministic": wrapper._deterministic,
        "is_foldable": False,
        "wrapper": wrapper,
        "takes_row": wrapper._takes_row_as_input,
    }
    if isinstance(wrapper, UserDefinedScalarFunctionWrapper):
        is_async = isinstance(wrapper, UserDefinedAsyncScalarFunctionWrapper)
        return UserFunction(
            known,
            signature_of(known, wrapper, logical_type(wrapper._result_type)),
            row=PerCall(scalar.row_body),
            batch=PerCall(scalar.async_kernel if is_async else scalar.kernel),
            **common,
        )
    if isinstance(wrapper, UserDefinedTableFunctionWrapper):
        rows = RowType(row_type_of(wrapper._result_types).fields, nullable=False)
        sign = signature_of(known, wrapper, ArrayType(rows, nullable=False))
        return UserFunction(known, sign, batch=PerCall(table_kernel), kind=FunctionKind.TABLE, columns=rows, **common)
    if isinstance(wrapper, UserDefinedProcessTableFunctionWrapper):
        rows = RowType(row_type_of(wrapper._result_types).fields, nullable=False)
        sign = signature_of(known, wrapper, ArrayType(rows, nullable=False))
        return UserFunction(known, sign, kind=FunctionKind.PROCESS_TABLE, columns=rows, **common)
    assert isinstance(wrapper, UserDefinedAggregateFunctionWrapper)
    result = logical_type(wrapper._result_type)
    if wrapper._is_table_aggregate:
        rows = result if isinstance(result, RowType) else RowType([RowField("f0", result)])
        result = ArrayType(rows.copy(nullable=False), nullable=False)
    sign = signature_of(known, wrapper, result)
    kind = FunctionKind.TABLE_AGGREGATE if wrapper._is_table_aggregate else FunctionKind.AGGREGATE
    return UserFunction(known, sign, row=PerCall(aggregate_body), kind=kind, merges=supports_merge(wrapper), **common)


def signature_of(name: str, wrapper: UserDefinedFunctionWrapper, result: LogicalType) -> Signature:
    """Arguments of the input types, if there are any, and the declared result."""
    expected = None if wrapper._input_types is None else [logical_type(each) for each in wrapper._input_types]

    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        if expected is None or wrapper._takes_row_as_input:
            for argument in arguments:
                if is_null(argument.type):
                    raise ValidationError("Illegal use of 'NULL'.", hint="Give it a type: CAST(NULL AS INT).")
            return Inferred(tuple(argument.type for argument in arguments), result)
        types = ", ".join(type_.as_summary_string() for type_ in expected)
        hint = f"Supported signatures are: {name}({types})"
        if len(arguments) != len(expected):
            raise ValidationError(
                f"Invalid function call:\n{name}({types_text(arguments)})\n"
                f"Invalid number of arguments: {len(expected)} expected but {len(arguments)} passed.",
                hint=hint,
            )
        for argument, type_ in zip(arguments, expected, strict=True):
            if not is_null(argument.type) and not supports_implicit_cast(argument.type, type_):
                raise ValidationError(
                    f"Invalid function call:\n{name}({types_text(arguments)})\n"
                    f"Unsupported argument type. Expected type '{type_.as_summary_string()}' but actual type was "
                    f"'{argument.type.as_summary_string()}'.",
                    hint=hint,
                )
            if not type_.nullable and (is_null(argument.type) or argument.type.nullable):
                raise ValidationError(
                    f"Invalid function call:\n{name}({types_text(arguments)})\n"
                    f"Unsupported argument type. Expected nullable type of '{type_.as_summary_string()}'.",
                    hint=hint,
                )
        return Inferred(tuple(expected), result)

    return infer


def row_type_of(types: Any) -> RowType:
    """The columns of a table function: a row type, its text, or the types of the columns."""
    if isinstance(types, str):
        found = logical_type(types)
        return found if isinstance(found, RowType) else RowType([RowField("f0", found)])
    if isinstance(types, RowType):
        return types
    if isinstance(types, LogicalType):
        types = [types]
    return RowType([RowField(f"f{index}", logical_type(each)) for index, each in enumerate(types)])
