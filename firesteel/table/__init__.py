"""The Table API and SQL. Queries need the extra ``sql``; types and schemas do not."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from firesteel.table.types import DataTypes

if TYPE_CHECKING:
    from firesteel.common.types import Row, RowKind
    from firesteel.table.changelog_mode import ChangelogMode
    from firesteel.table.compiled_plan import CompiledPlan
    from firesteel.table.data_view import DataView, ListView, MapView
    from firesteel.table.environment_settings import EnvironmentSettings
    from firesteel.table.explain_detail import ExplainDetail
    from firesteel.table.expression import Expression
    from firesteel.table.model_descriptor import ModelDescriptor
    from firesteel.table.plan_reference import PlanReference
    from firesteel.table.result_kind import ResultKind
    from firesteel.table.schema import Schema
    from firesteel.table.sql_dialect import SqlDialect
    from firesteel.table.statement_set import StatementSet
    from firesteel.table.table import GroupedTable, GroupWindowedTable, OverWindowedTable, Table, WindowGroupedTable
    from firesteel.table.table_config import TableConfig
    from firesteel.table.table_descriptor import FormatDescriptor, TableDescriptor
    from firesteel.table.table_environment import StreamTableEnvironment, TableEnvironment
    from firesteel.table.table_pipeline import TablePipeline
    from firesteel.table.table_result import TableResult
    from firesteel.table.table_schema import TableSchema
    from firesteel.table.udf import (
        AggregateFunction,
        AsyncScalarFunction,
        FunctionContext,
        ScalarFunction,
        TableAggregateFunction,
        TableFunction,
    )

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "ChangelogMode",
    "CompiledPlan",
    "DataTypes",
    "DataView",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "FunctionContext",
    "GroupWindowedTable",
    "GroupedTable",
    "ListView",
    "MapView",
    "ModelDescriptor",
    "OverWindowedTable",
    "PlanReference",
    "ResultKind",
    "Row",
    "RowKind",
    "ScalarFunction",
    "Schema",
    "SqlDialect",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableAggregateFunction",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableFunction",
    "TablePipeline",
    "TableResult",
    "TableSchema",
    "WindowGroupedTable",
]

_MODULES = {
    "AggregateFunction": "firesteel.table.udf",
    "AsyncScalarFunction": "firesteel.table.udf",
    "ChangelogMode": "firesteel.table.changelog_mode",
    "CompiledPlan": "firesteel.table.compiled_plan",
    "DataView": "firesteel.table.data_view",
    "EnvironmentSettings": "firesteel.table.environment_settings",
    "ExplainDetail": "firesteel.table.explain_detail",
    "Expression": "firesteel.table.expression",
    "FormatDescriptor": "firesteel.table.table_descriptor",
    "FunctionContext": "firesteel.table.udf",
    "GroupWindowedTable": "firesteel.table.table",
    "GroupedTable": "firesteel.table.table",
    "ListView": "firesteel.table.data_view",
    "MapView": "firesteel.table.data_view",
    "ModelDescriptor": "firesteel.table.model_descriptor",
    "OverWindowedTable": "firesteel.table.table",
    "PlanReference": "firesteel.table.plan_reference",
    "ResultKind": "firesteel.table.result_kind",
    "Row": "firesteel.common.types",
    "RowKind": "firesteel.common.types",
    "ScalarFunction": "firesteel.table.udf",
    "Schema": "firesteel.table.schema",
    "SqlDialect": "firesteel.table.sql_dialect",
    "StatementSet": "firesteel.table.statement_set",
    "StreamTableEnvironment": "firesteel.table.table_environment",
    "Table": "firesteel.table.table",
    "TableAggregateFunction": "firesteel.table.udf",
    "TableConfig": "firesteel.table.table_config",
    "TableDescriptor": "firesteel.table.table_descriptor",
    "TableEnvironment": "firesteel.table.table_environment",
    "TableFunction": "firesteel.table.udf",
    "TablePipeline": "firesteel.table.table_pipeline",
    "TableResult": "firesteel.table.table_result",
    "TableSchema": "firesteel.table.table_schema",
    "WindowGroupedTable": "firesteel.table.table",
}
"""Where names are that are imported when they are used: planners are not needed by those who declare types."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
