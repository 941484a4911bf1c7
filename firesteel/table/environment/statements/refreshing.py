"""Jobs that keep materialized tables up to date: streams, and batches at times of a schedule."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from firesteel.config import checkpointing_options, pipeline_options
from firesteel.table.binder.calls import call, cast_to
from firesteel.table.binder.ddl.materialized import date_formatters
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef, Literal
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.materialized import CatalogMaterializedTable, Freshness
from firesteel.table.environment.planning.inserts import sink_of
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import execute_inserts
from firesteel.table.environment.results.result import TableResult
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import Filter, LogicalNode, Project
from firesteel.table.values.date_format import Moment, formatter
from firesteel.types.logical import VarCharType

if TYPE_CHECKING:
    from firesteel.common.job_client import JobClient

__all__ = ["RefreshJobs", "refresh_once", "start_continuous"]

_log = logging.getLogger(__name__)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local times have no zone


def start_continuous(
    session: TableSession, found: FoundTable, options: Mapping[str, str], savepoint: str | None = None
) -> JobClient:
    """Starts the job that writes the changes of the query, with checkpoints as often as the table has to be fresh."""
    table = _materialized(found)
    settings = {
        pipeline_options.RUNTIME_MODE.key: "STREAMING",
        pipeline_options.PIPELINE_NAME.key: f"Materialized_table_{found.identifier}_continuous_refresh_job",
    }
    if not session.configuration.contains(checkpointing_options.CHECKPOINTING_INTERVAL):
        settings[checkpointing_options.CHECKPOINTING_INTERVAL.key] = f"{table.freshness.seconds} s"
    if savepoint is not None:
        settings["execution.state-recovery.path"] = savepoint
    result = _insert(session.derived(settings), found, options)
    client = result.get_job_client()
    assert client is not None
    return client


def refresh_once(
    session: TableSession, found: FoundTable, partition: Mapping[str, str], kind: str = "one_time"
) -> TableResult:
    """Starts the batch that replaces the rows of the table, or of one partition."""
    table = _materialized(found)
    unknown = [key for key in partition if key not in table.partition_keys]
    if unknown:
        known = ", ".join(table.partition_keys)
        raise ValidationError(
            "The partition spec contains unknown partition keys:\n\n"
            f"{', '.join(unknown)}\n\nAll known partition keys are:\n\n{known}"
        )
    name = f"Materialized_table_{found.identifier}_{kind}_refresh_job"
    settings = {pipeline_options.RUNTIME_MODE.key: "BATCH", pipeline_options.PIPELINE_NAME.key: name}
    return _insert(session.derived(settings), found, {}, partition, overwrite=True)


def _materialized(found: FoundTable) -> CatalogMaterializedTable:
    assert isinstance(found.table, CatalogMaterializedTable)
    return found.table


def _insert(
    session: TableSession,
    found: FoundTable,
    options: Mapping[str, str],
    partition: Mapping[str, str] | None = None,
    *,
    overwrite: bool = False,
) -> TableResult:
    table = _materialized(found)
    assert table.expanded_query is not None
    plan = session.bind(parse_query(table.expanded_query), table.expanded_query)
    plan = _as_columns(session, table, plan)
    if partition:
        plan = _of_partition(plan, partition)
    sink = sink_of(session, found, plan, options, overwrite=overwrite)
    return execute_inserts(session, [sink])


def _as_columns(session: TableSession, table: CatalogMaterializedTable, plan: LogicalNode) -> LogicalNode:
    """The query with its columns in the order of the table; NULL where it has none."""
    columns = [column for column in session.resolved_schema(table).columns if column.is_persisted()]
    places = {name: index for index, name in enumerate(table.query_columns)}
    expressions: list[Expression] = []
    for column in columns:
        if column.name in places:
            index = places[column.name]
            expressions.append(InputRef(plan.row_type.fields[index].type, index, column.name))
        else:
            expressions.append(Literal(column.data_type, None))
    return Project(plan, tuple(expressions), tuple(column.name for column in columns))


def _of_partition(plan: LogicalNode, partition: Mapping[str, str]) -> LogicalNode:
    """The rows of a partition."""
    names = list(plan.row_type.field_names)
    condition: Expression | None = None
    for key, value in partition.items():
        field = plan.row_type.fields[names.index(key)]
        text = Literal(VarCharType(nullable=False), value)
        same = call("EQUALS", [InputRef(field.type, names.index(key), key), cast_to(text, field.type)])
        condition = same if condition is None else call("AND", [condition, same])
    assert condition is not None
    return Filter(plan, condition)


class RefreshJobs:
    """The jobs and schedules of the materialized tables of a session."""

    def __init__(self) -> None:
        self.clients: dict[ObjectIdentifier, JobClient] = {}
        self._schedules: dict[ObjectIdentifier, _Schedule] = {}

    def schedule(self, session: TableSession, identifier: ObjectIdentifier, freshness: Freshness) -> None:
        """Has a table refreshed at the times of a schedule, until it is unscheduled."""

        def refresh(at: dt.datetime) -> None:
            found = session.find_table(identifier)
            if found is not None and isinstance(found.table, CatalogMaterializedTable):
                shifted = at - dt.timedelta(seconds=freshness.seconds)
                moment = Moment(int((shifted.replace(tzinfo=None) - _EPOCH).total_seconds()) * 10**9)
                partition = {
                    column: formatter(pattern)(moment) for column, pattern in date_formatters(found.table).items()
                }
                refresh_once(session, found, partition, "periodic").wait()

        zone = ZoneInfo(session.config.get_local_timezone())
        self._schedules[identifier] = _Schedule(str(identifier), freshness, zone, refresh)

    def unschedule(self, identifier: ObjectIdentifier) -> None:
        """Ends the schedule of a table; a refresh that runs is waited for."""
        schedule = self._schedules.pop(identifier, None)
        if schedule is not None:
            schedule.close()


class _Schedule:
    """Calls a function at times that are the same every day: those that are multiples of the freshness."""

    def __init__(self, name: str, freshness: Freshness, zone: ZoneInfo, refresh: Callable[[dt.datetime], Any]) -> None:
        self._name = name
        self._seconds = freshness.seconds
        self._zone = zone
        self._refresh = refresh
        self._is_over = threading.Event()
        # a daemon: the program may end while tables wait for their next refresh
        self._thread = threading.Thread(target=self._run, name=f"refresh-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the schedule."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        at = self._after(time.time())
        while not self._is_over.wait(max(0.0, at.timestamp() - time.time())):
            try:
                self._refresh(at)
            except Exception:  # noqa: BLE001 - queries and connectors may raise anything
                _log.exception("The refresh of the materialized table %s failed; the next one is tried.", self._name)
            at = self._after(max(time.time(), at.timestamp()))

    def _after(self, seconds: float) -> dt.datetime:
        """The next time of the schedule after another one."""
        now = dt.datetime.fromtimestamp(seconds, self._zone)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        if self._seconds > 86400:
            midnight -= dt.timedelta(days=midnight.weekday())
        passed = int((now - midnight).total_seconds())
        return midnight + dt.timedelta(seconds=(passed // self._seconds + 1) * self._seconds)
