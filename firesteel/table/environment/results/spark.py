"""Bounded queries on Spark: which of them run as Spark SQL, and their DataFrames."""

from __future__ import annotations

import importlib
import itertools
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.common.typeinfo import Types, from_logical
from firesteel.config import pipeline_options, python_options
from firesteel.datastream.executor import context_executor
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Literal
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.streams import DataStreamSource, plain_row_type
from firesteel.table.evaluation.spark_text import spark_type
from firesteel.table.functions.spark.failures import parsed_failure
from firesteel.table.names import quoted
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.rules.joins.subqueries_to_joins import subqueries_to_joins
from firesteel.table.rules.narrow_scans import narrow_scans
from firesteel.table.rules.prune_scans import prune_scans
from firesteel.table.spark_sql.queries import SparkQueryPrinter, UnsupportedInSparkError
from firesteel.table.user_functions.spark import SparkFunction, reported_failure, sent_arguments, spark_function
from firesteel.types.internal import columns_schema
from firesteel.types.logical import (
    LocalZonedTimestampType,
    LogicalType,
    LogicalTypeRoot,
    RowType,
    TimestampType,
)

__all__ = ["DataFrameSource", "SparkPlan", "SparkRows", "from_dataframe", "plan_for_spark", "through_a_job"]

_SPARK_SQL = "firesteel.spark.sql"
_MAX_PRECISION = 6
_R = LogicalTypeRoot
_ROOTS = {
    _R.CHAR,
    _R.VARCHAR,
    _R.BOOLEAN,
    _R.BINARY,
    _R.VARBINARY,
    _R.DECIMAL,
    _R.TINYINT,
    _R.SMALLINT,
    _R.INTEGER,
    _R.BIGINT,
    _R.FLOAT,
    _R.DOUBLE,
    _R.DATE,
    _R.TIMESTAMP_WITHOUT_TIME_ZONE,
    _R.TIMESTAMP_WITH_LOCAL_TIME_ZONE,
    _R.ARRAY,
    _R.MAP,
    _R.ROW,
}
_DEPENDENCIES = (
    python_options.FILES,
    python_options.ARCHIVES,
    python_options.REQUIREMENTS,
    python_options.EXECUTABLE,
)
"""What jobs bring for their functions; Spark's own Python workers do not have it."""
_numbers = itertools.count(1)
_INSERTS = ChangelogMode.insert_only()


@dataclass(frozen=True, eq=False)
class DataFrameSource(DataStreamSource):
    """The rows of a DataFrame."""

    dataframe: Any = None

    @property
    def is_bounded(self) -> bool:
        return True

    def to_dataframe(self, session: Any) -> Any:
        return self.dataframe

    def spark_reader(self, session: Any) -> str:
        return "Spark, as a DataFrame"

    def as_summary_string(self) -> str:
        return "DataFrame"


def from_dataframe(session: TableSession, dataframe: Any) -> DataFrameSource:
    """A source of the rows of a DataFrame of the program."""
    stream = session.environment.from_dataframe(dataframe)
    info = stream._transformation.output_type
    type_ = info.to_logical()
    return DataFrameSource(stream, RowType(type_.fields, nullable=False), _INSERTS, dataframe=dataframe)


@dataclass(frozen=True)
class SparkPlan:
    """A query as Spark SQL."""

    session: TableSession
    row_type: RowType
    text: str
    views: dict[str, ScanTableSource]
    functions: dict[str, SparkFunction] = field(default_factory=dict)

    def readers(self) -> str:
        """What reads each table, a line for each."""
        session = importlib.import_module(_SPARK_SQL).active_session()
        return "".join(f"{name}: read by {source.spark_reader(session)}\n" for name, source in self.views.items())

    def dataframe(self) -> Any:
        """The DataFrame of the query; it is analyzed, not computed."""
        spark: Any = importlib.import_module(_SPARK_SQL)
        frames = (source.dataframe for source in self.views.values() if isinstance(source, DataFrameSource))
        first = next(frames, None)
        session = spark.get_session(self.session.configuration) if first is None else first.sparkSession
        views = {name: self._view(source) for name, source in self.views.items()}
        return self._named(spark.query(session, self.text, views, self.functions))

    def _named(self, dataframe: Any) -> Any:
        """Fields of rows have the names of the query, not those of the expressions that they are made by."""
        fields = self.row_type.fields
        if not any(part.type.children() for part in fields):
            return dataframe
        places = [f"c{index}" for index in range(len(fields))]
        columns = [
            f"CAST({place} AS {spark_type(part.type)}) AS {quoted(part.name)}"
            for place, part in zip(places, fields, strict=True)
        ]
        return dataframe.toDF(*places).selectExpr(*columns)

    def batches(self, tag: str, is_cancelled: Callable[[], bool]) -> Iterator[ColumnBatch]:
        """Runs the query; its rows in batches. Its Spark jobs have a tag."""
        dataframe = self.dataframe()
        try:
            table = importlib.import_module(_SPARK_SQL).collect(dataframe, tag, is_cancelled)
        except FiresteelError as error:
            failed = reported_failure(str(error.__cause__)) or parsed_failure(error.message)
            if failed is None:
                raise
            raise failed from error
        schema = columns_schema(self.row_type)
        for batch in table.rename_columns(schema.names).cast(schema).to_batches():
            yield ColumnBatch(batch)

    def _view(self, source: ScanTableSource) -> Callable[[Any], Any]:
        def create(session: Any) -> Any:
            found = source.to_dataframe(session)
            if found is None:
                found = through_a_job(self.session, source)
            names = source.produced_type.field_names
            return found if tuple(found.columns) == names else found.toDF(*names)

        return create


class SparkRows:
    """The rows of a query on Spark. The query runs when they are read, and closing them from another thread ends it."""

    def __init__(self, plan: SparkPlan) -> None:
        self._plan = plan
        self._tag = f"firesteel-{uuid.uuid4().hex}"
        self._is_cancelled = threading.Event()

    def __iter__(self) -> Iterator[ColumnBatch]:
        return self._plan.batches(self._tag, self._is_cancelled.is_set)

    def close(self) -> None:
        """Cancels the Spark jobs of the query, and those that it has not started yet."""
        self._is_cancelled.set()
        importlib.import_module(_SPARK_SQL).cancel(self._tag)

    def progress(self) -> tuple[int, int] | None:
        """How many tasks of the stages that run have ended, of how many."""
        found: tuple[int, int] | None = importlib.import_module(_SPARK_SQL).progress(self._tag)
        return found


def through_a_job(session: TableSession, source: ScanTableSource) -> Any:
    """The rows of a source that Spark cannot read itself: those of a batch job of this engine."""
    environment = session.environment._create_scratch()
    stream = source.create_stream(ScanContext(environment, f"Source: {source.as_summary_string()}"))
    rows = stream._transform("ColumnsToRows", ColumnsToRowsSpec(), None)
    rows._transformation.output_type = from_logical(plain_row_type(source.produced_type), Types.LIST)
    return rows.to_dataframe()


def plan_for_spark(session: TableSession, plan: LogicalNode) -> SparkPlan:
    """The query as Spark SQL. Raises UnsupportedInSparkError with the reason why it cannot run there."""
    executor = session.environment._executor or context_executor()
    if executor is not None and not getattr(executor, "is_embedded", False):
        raise UnsupportedInSparkError("jobs do not run on a Spark session of this process")
    views: dict[str, ScanTableSource] = {}
    calls = _Functions(session)

    def view_of(scan: TableScan) -> str:
        source = scan.source
        if source is None:
            raise UnsupportedInSparkError(f"{scan.identifier.as_summary_string()} has no source")
        if not source.is_bounded:
            raise ValidationError(f"The table '{scan.identifier.as_summary_string()}' is unbounded.")
        if not source.changelog_mode.is_insert_only:
            raise UnsupportedInSparkError(f"{scan.identifier.as_summary_string()} is a changelog")
        _check_types(source.produced_type)
        name = f"firesteel_table_{next(_numbers)}"
        views[name] = source
        return name

    _check_types(plan.row_type)
    printer = SparkQueryPrinter(view_of, calls.text)
    try:
        text = printer.print(narrow_scans(prune_scans(plan)))
    except UnsupportedInSparkError:
        views.clear()
        calls.found.clear()
        text = printer.print(narrow_scans(prune_scans(subqueries_to_joins(plan))))
    return SparkPlan(session, plan.row_type, text, views, calls.found)


class _Functions:
    """The calls of functions of the user in a query, under names that no other query uses."""

    def __init__(self, session: TableSession) -> None:
        self._configuration = session.configuration
        self._session = session.expression_session()
        self.found: dict[str, SparkFunction] = {}

    def text(self, call: Call, arguments: Sequence[str]) -> str:
        """A call in Spark SQL, of a function that is registered for it. Raises UnsupportedInSparkError."""
        name = call.function
        for option in _DEPENDENCIES:
            if self._configuration.get_optional(option):
                raise UnsupportedInSparkError(f"the function {name} may need what {option.key} has")
        for part in (*call.arguments, call):
            if spark_type(part.type) is None and not isinstance(part, Literal):
                raise UnsupportedInSparkError(f"the function {name} with the type {part.type.as_summary_string()}")
        result = spark_type(call.type)
        assert result is not None
        parameters = self._configuration.get(pipeline_options.GLOBAL_JOB_PARAMETERS) or {}
        try:
            found = spark_function(call, self._session, result, parameters)
        except Exception as error:  # the job on operators of this engine says what is wrong with it
            raise UnsupportedInSparkError(f"the function {name} cannot be pickled: {error}") from error
        known = f"firesteel_{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{next(_numbers)}"
        self.found[known] = found
        return f"{known}({', '.join(sent_arguments(call, arguments))})"


def _check_types(row_type: RowType) -> None:
    for part in row_type.fields:
        _check_type(part.type)


def _check_type(type_: LogicalType) -> None:
    is_fine = isinstance(type_, (TimestampType, LocalZonedTimestampType)) and type_.precision > _MAX_PRECISION
    if type_.root not in _ROOTS or is_fine:
        raise UnsupportedInSparkError(f"a column of type {type_.as_summary_string()}")
    for part in type_.children():
        _check_type(part)
