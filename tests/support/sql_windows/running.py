"""Runs queries of windows in process."""

from __future__ import annotations

from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.bound.session import Session
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.rules.optimizer import optimize
from firesteel.table.translate.catalogue import Translator
from tests.support.sql_windows.tables import ZONE, resolve

SESSION = Session(local_time_zone=ZONE)


def bind(sql: str) -> LogicalNode:
    """The plan of a query as it is bound."""
    return QueryBinder(resolve, sql, SESSION).bind(parse_query(sql))


def stream_of(sql: str, env: StreamExecutionEnvironment, configuration: Configuration | None = None) -> DataStream[Any]:
    """The rows of a query as a stream."""
    root = optimize(bind(sql))
    translator = Translator(env, [root], configuration, SESSION)
    return translator.apply(translator.translate(root), "ColumnsToRows", ColumnsToRowsSpec())


def comparable(row: Any) -> list[Any]:
    """A row as the recordings have it."""
    return [row.get_row_kind().name, *map(_value, row)]


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)
