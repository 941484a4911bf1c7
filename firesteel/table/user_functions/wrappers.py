"""udf, udtf, udaf and udtaf: what declares functions with their types."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.table.user_functions.base import AsyncScalarFunction, UserDefinedFunction
from firesteel.types.logical import FieldsType, LogicalType, MapType

__all__ = [
    "FUNCTION_TYPES",
    "UserDefinedAggregateFunctionWrapper",
    "UserDefinedAsyncScalarFunctionWrapper",
    "UserDefinedFunctionWrapper",
    "UserDefinedScalarFunctionWrapper",
    "UserDefinedTableFunctionWrapper",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]

FUNCTION_TYPES = ("general", "pandas", "arrow")
"""What a function takes: the values of a row, or pandas Series or Arrow arrays of many. Flink has no ``arrow``."""

Type = LogicalType | str
_Types = Any


class UserDefinedFunctionWrapper:
    """A function with its types and name. Calling it makes an expression of the Table API."""

    def __init__(
        self, func: Any, input_types: _Types, func_type: str, deterministic: bool | None = None, name: str | None = None
    ) -> None:
        is_function = isinstance(func, UserDefinedFunction) or callable(func)
        if inspect.isclass(func) or not is_function:
            raise TypeError(f"Invalid function: not a function or callable (__call__ is not defined): {type(func)}")
        self._func = func
        self._input_types = None if input_types is None else _input_types(input_types)
        self._name: str = name or getattr(func, "__name__", None) or type(func).__name__
        own = func.is_deterministic() if isinstance(func, UserDefinedFunction) else None
        if deterministic is not None and own is not None and deterministic != own:
            raise ValueError(f"Inconsistent deterministic: {deterministic} and {own}")
        self._deterministic = next((each for each in (deterministic, own) if each is not None), True)
        self._func_type = func_type
        self._takes_row_as_input = False
        self._alias_names: tuple[str, ...] = ()
        functools.update_wrapper(self, func, assigned=("__doc__", "__module__"), updated=())

    def __call__(self, *args: Any) -> Any:
        """An expression that calls the function."""
        from firesteel.table.dsl.functions import call

        return call(self, *args)

    def alias(self, *alias_names: str) -> Any:
        """Names the columns of its results, in ``map``, ``flat_map``, ``aggregate`` and ``flat_aggregate``."""
        self._alias_names = alias_names
        return self

    def _set_takes_row_as_input(self) -> UserDefinedFunctionWrapper:
        self._takes_row_as_input = True
        return self


class UserDefinedScalarFunctionWrapper(UserDefinedFunctionWrapper):
    """A scalar function."""

    def __init__(
        self, func: Any, input_types: _Types, result_type: Any, func_type: str, deterministic: Any, name: str | None
    ) -> None:
        super().__init__(func, input_types, func_type, deterministic, name)
        self._result_type = _type(result_type, "returnType", "returnType should be DataType or str but is")


class UserDefinedAsyncScalarFunctionWrapper(UserDefinedScalarFunctionWrapper):
    """A scalar function whose calls run at the same time."""


class UserDefinedTableFunctionWrapper(UserDefinedFunctionWrapper):
    """A table function."""

    def __init__(
        self, func: Any, input_types: _Types, result_types: Any, deterministic: Any = None, name: str | None = None
    ) -> None:
        super().__init__(func, input_types, "general", deterministic, name)
        found: Any
        if isinstance(result_types, FieldsType):
            found = list(result_types.fields)
            self._result_types: str | FieldsType | Sequence[Type] = result_types
        elif isinstance(result_types, str):
            found = [result_types]
            self._result_types = result_types
        else:
            found = result_types if isinstance(result_types, (list, tuple)) else [result_types]
            message = "result_type should be DataType or str but contains"
            self._result_types = [_type(each, "result_type", message) for each in found]


class UserDefinedAggregateFunctionWrapper(UserDefinedFunctionWrapper):
    """An aggregate function, or a table aggregate function."""

    def __init__(
        self,
        func: Any,
        input_types: _Types,
        result_type: Any,
        accumulator_type: Any,
        func_type: str,
        deterministic: Any,
        name: str | None,
        is_table_aggregate: bool = False,
    ) -> None:
        super().__init__(func, input_types, func_type, deterministic, name)
        if accumulator_type is None and func_type == "general":
            accumulator_type = func.get_accumulator_type()
        if result_type is None:
            result_type = func.get_result_type()
        self._result_type = _type(result_type, "returnType", "returnType should be DataType or str but is")
        if func_type == "pandas" and isinstance(self._result_type, MapType):
            raise TypeError(
                f"Invalid returnType: Pandas UDAF doesn't support DataType type {self._result_type} currently"
            )
        if accumulator_type is not None:
            message = "accumulator_type should be DataType or str but is"
            accumulator_type = _type(accumulator_type, "accumulator_type", message)
        self._accumulator_type = accumulator_type
        self._is_table_aggregate = is_table_aggregate


def _input_types(given: Any) -> list[Type]:
    if isinstance(given, FieldsType):
        return list(given.children())
    found = given if isinstance(given, (list, tuple)) else [given]
    return [_type(each, "input_type", "input_type should be DataType or str but contains") for each in found]


def _type(given: Any, name: str, message: str) -> Type:
    if isinstance(given, TypeInformation):
        return given.to_logical()
    if not isinstance(given, (LogicalType, str)):
        raise TypeError(f"Invalid {name}: {message} {given}")
    return given


def _check_func_type(func_type: str) -> None:
    if func_type not in FUNCTION_TYPES:
        raise ValueError(f"The func_type must be one of '{', '.join(FUNCTION_TYPES)}', got {func_type}.")


def _create_udf(f: Any, input_types: Any, result_type: Any, func_type: str, deterministic: Any, name: Any) -> Any:
    if isinstance(f, AsyncScalarFunction) or inspect.iscoroutinefunction(f):
        if func_type != "general":
            raise ValueError(
                f"Async scalar functions do not support {func_type} func_type. "
                "Please use func_type='general' (default) for async functions."
            )
        return UserDefinedAsyncScalarFunctionWrapper(f, input_types, result_type, func_type, deterministic, name)
    return UserDefinedScalarFunctionWrapper(f, input_types, result_type, func_type, deterministic, name)


def _declared(create: Callable[..., Any], f: Any, **options: Any) -> Any:
    return functools.partial(create, **options) if f is None else create(f, **options)


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declares a scalar function: of a callable, a coroutine function, a ScalarFunction or an AsyncScalarFunction.

    >>> from firesteel.table import DataTypes
    >>> from firesteel.table.expressions import col
    >>> @udf(result_type=DataTypes.BIGINT())
    ... def add(i, j):
    ...     return i + j
    >>> print(add(col("a"), 1))
    add(a, 1)
    """
    _check_func_type(func_type)
    options = {"func_type": func_type, "deterministic": deterministic, "name": name}
    return _declared(_create_udf, f, input_types=input_types, result_type=result_type, **options)


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Declares a table function: of a callable that returns or yields rows, or a TableFunction."""
    options = {"deterministic": deterministic, "name": name}
    return _declared(UserDefinedTableFunctionWrapper, f, input_types=input_types, result_types=result_types, **options)


def udaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declares an aggregate function: an AggregateFunction, or a callable of pandas Series or Arrow arrays."""
    _check_func_type(func_type)
    return _declared(
        UserDefinedAggregateFunctionWrapper,
        f,
        input_types=input_types,
        result_type=result_type,
        accumulator_type=accumulator_type,
        func_type=func_type,
        deterministic=deterministic,
        name=name,
    )


def udtaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declares a table aggregate function: a TableAggregateFunction."""
    if func_type != "general":
        raise ValueError(f"The func_type must be 'general', got {func_type}.")
    return _declared(
        UserDefinedAggregateFunctionWrapper,
        f,
        input_types=input_types,
        result_type=result_type,
        accumulator_type=accumulator_type,
        func_type=func_type,
        deterministic=deterministic,
        name=name,
        is_table_aggregate=True,
    )
