"""StreamTableEnvironment: tables of streams, and streams of tables."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.environment.environment import TableEnvironment
from firesteel.table.environment.planning.selection import nodes_of
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.stream_fields import (
    from_stream_with_fields,
    to_typed_stream,
    with_target_schema,
)
from firesteel.table.environment.planning.streams import from_stream, to_stream
from firesteel.table.environment.table import Table
from firesteel.table.environment_settings import EnvironmentSettings
from firesteel.table.schema import Schema

__all__ = ["StreamTableEnvironment"]


class StreamTableEnvironment(TableEnvironment):
    """A table environment on a stream environment: streams become tables, and tables streams."""

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """An environment on that of a program."""
        environment = stream_execution_environment
        if environment is None:
            environment = StreamExecutionEnvironment.get_execution_environment()
        elif not isinstance(environment, StreamExecutionEnvironment):
            raise TypeError(f"create needs a StreamExecutionEnvironment, got {environment!r}.")
        settings = environment_settings
        if settings is None:
            settings = EnvironmentSettings.new_instance().with_configuration(environment.get_configuration()).build()
        return StreamTableEnvironment(TableSession(environment, settings))

    def from_data_stream(self, data_stream: DataStream[Any], *fields_or_schema: Any) -> Table:
        """A table of the records of a stream: Rows, tuples or single values with a declared type.

        A schema declares columns, computed columns, the metadata column ``rowtime`` with the timestamps of the records,
        and the watermark, which is ``SOURCE_WATERMARK()`` if it is that of the stream. Instead of a schema, columns are
        declared by expressions: fields by name or, if none of them is one, by position; ``col("t").rowtime`` is the
        timestamp of the records, and ``col("t").proctime`` the time of processing.
        """
        if not fields_or_schema or isinstance(fields_or_schema[0], Schema):
            schema = _schema(fields_or_schema)
            return self._table(from_stream(self._session, data_stream, schema, ChangelogMode.insert_only()))
        fields = nodes_of(fields_or_schema, "from_data_stream")
        return self._table(from_stream_with_fields(self._session, data_stream, fields))

    def from_changelog_stream(
        self,
        data_stream: DataStream[Any],
        schema: Schema | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> Table:
        """A table of the Rows of a stream and their kinds."""
        mode = changelog_mode or ChangelogMode.all()
        return self._table(from_stream(self._session, data_stream, schema, mode))

    def to_data_stream(self, table: Table) -> DataStream[Any]:
        """A stream of the rows of a table to which rows are only added."""
        return to_stream(self._session, table._plan, ChangelogMode.insert_only())

    def to_changelog_stream(
        self,
        table: Table,
        target_schema: Schema | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> DataStream[Any]:
        """A stream of the rows of a table with their kinds; columns get names and types of a schema by position."""
        plan = table._plan
        if target_schema is not None:
            plan = with_target_schema(self._session, plan, target_schema)
        return to_stream(self._session, plan, changelog_mode or ChangelogMode.all())

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream[Any]:
        """A stream of the rows of a table to which rows are only added, as tuples or Rows of a type."""
        return to_typed_stream(self._session, table._plan, type_info, retracts=False)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream[Any]:
        """A stream of pairs: whether a row is new or taken back, and the row as a tuple or Row of a type."""
        return to_typed_stream(self._session, table._plan, type_info, retracts=True)

    def _table(self, plan: Any) -> Table:
        return Table(plan, self._session, self)

    def _as_table(self, table: Any, fields_or_schema: tuple[Any, ...]) -> Table:
        if isinstance(table, DataStream):
            return self.from_data_stream(table, *fields_or_schema)
        return super()._as_table(table, fields_or_schema)


def _schema(fields_or_schema: tuple[Any, ...]) -> Schema | None:
    if len(fields_or_schema) > 1:
        raise ValidationError("The columns of a stream are declared by one Schema, or by expressions.")
    return fields_or_schema[0] if fields_or_schema else None
