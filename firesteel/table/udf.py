"""Functions of users: the classes that they derive from, and udf, udtf, udaf and udtaf."""

from firesteel.table.user_functions.base import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ImperativeAggregateFunction,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
)
from firesteel.table.user_functions.process import (
    ArgumentTrait,
    ProcessContext,
    ProcessTableFunction,
    TimeContext,
    UserDefinedProcessTableFunctionWrapper,
    udptf,
)
from firesteel.table.user_functions.wrappers import (
    UserDefinedAggregateFunctionWrapper,
    UserDefinedAsyncScalarFunctionWrapper,
    UserDefinedFunctionWrapper,
    UserDefinedScalarFunctionWrapper,
    UserDefinedTableFunctionWrapper,
    udaf,
    udf,
    udtaf,
    udtf,
)

__all__ = [
    "AggregateFunction",
    "ArgumentTrait",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ProcessContext",
    "ProcessTableFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "TimeContext",
    "UserDefinedAggregateFunctionWrapper",
    "UserDefinedAsyncScalarFunctionWrapper",
    "UserDefinedFunction",
    "UserDefinedFunctionWrapper",
    "UserDefinedProcessTableFunctionWrapper",
    "UserDefinedScalarFunctionWrapper",
    "UserDefinedTableFunctionWrapper",
    "udaf",
    "udf",
    "udptf",
    "udtaf",
    "udtf",
]
