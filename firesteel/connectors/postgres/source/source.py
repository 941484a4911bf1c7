"""A source that reads a table or the result of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import BasicTypeInfo, RowTypeInfo, TypeInformation, Types, from_logical
from firesteel.connectors.postgres.connection import (
    PostgresConnectionOptions,
    connect,
    import_psycopg,
    split_name,
    translating,
)
from firesteel.connectors.postgres.source.enumerator import PostgresSplitEnumerator, boundaries
from firesteel.connectors.postgres.source.reader import PostgresReader
from firesteel.connectors.postgres.source.splits import PostgresSplit, SourceSettings, select_statement
from firesteel.spi.source import Boundedness, ReaderContext, Source, SplitEnumeratorContext
from firesteel.types.postgres import from_postgres

__all__ = ["PostgresSource", "PostgresSourceBuilder"]


class PostgresSource(Source[PostgresSplit]):
    """Reads a table or the result of a query, as Rows with the columns' names. Start with ``PostgresSource.builder()``.

    The source ends when everything is read, unless it is to look for new rows again and again. Each split is read in a
    transaction of its own: of a table that changes meanwhile, splits show different moments. For changes there is
    change data capture.

    The position in a split is the key of the last row read: the table's primary key, or the columns given with
    ``set_key_columns``. Without a key it is the number of rows read, as in Flink, and after a failure the query is
    executed again and as many rows are skipped; that is exact only if it gives the same rows in the same order.
    """

    name: ClassVar[str] = "PostgreSQL Source"
    emits_own_records = True

    def __init__(self, settings: SourceSettings) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        return f"PostgresSource({self.settings.describe()} at {self.settings.connection.describe()})"

    @staticmethod
    def builder() -> PostgresSourceBuilder:
        """Begins a source."""
        return PostgresSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        """Bounded unless it is to look for new rows."""
        polls = self.settings.poll_interval_ms is not None
        return Boundedness.CONTINUOUS_UNBOUNDED if polls else Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> PostgresSplitEnumerator:
        """Plans the splits with the server's help."""
        return PostgresSplitEnumerator(context, self.settings)

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[PostgresSplit] | None
    ) -> PostgresSplitEnumerator:
        """Continues with the splits that no reader had."""
        return PostgresSplitEnumerator(context, self.settings, state)

    def create_reader(self, context: ReaderContext) -> PostgresReader:
        """A reader with a connection of its own."""
        return PostgresReader(context, self.settings)

    def infer_type_info(self) -> RowTypeInfo:
        """The type of the rows; asks the server, where the program runs."""
        import_psycopg()
        from psycopg import sql

        settings = self.settings
        parameters = (None,) * len(settings.parameters[0]) if settings.parameters else ()
        statement, values = select_statement(settings, PostgresSplit("", parameters=parameters))
        with connect(settings.connection, name="firesteel source") as connection:
            with translating(f"The type of {settings.describe()} cannot be found", settings.connection.describe()):
                cursor = connection.execute(sql.SQL("{} LIMIT 0").format(statement), values)
                columns = cursor.description or []
        types = [from_logical(from_postgres(column.type_code), _array_type) for column in columns]
        return RowTypeInfo(types, [column.name for column in columns])


def _array_type(element: TypeInformation) -> TypeInformation:
    is_basic = isinstance(element, BasicTypeInfo) and element != Types.BIG_DEC()
    return Types.BASIC_ARRAY(element) if is_basic else Types.OBJECT_ARRAY(element)


class PostgresSourceBuilder:
    """Says what a PostgresSource reads; ``build()`` checks what can be checked without the server."""

    def __init__(self) -> None:
        self._connection: PostgresConnectionOptions | None = None
        self._url: str | None = None
        self._user: str | None = None
        self._password: str | None = None
        self._properties: dict[str, str] = {}
        self._settings: dict[str, Any] = {}

    def set_url(self, url: str) -> PostgresSourceBuilder:
        """``postgresql://user:password@host:port/database``, or a ``jdbc:postgresql:`` URL."""
        self._url = url
        return self

    def set_username(self, user: str) -> PostgresSourceBuilder:
        """Who reads, if it is not in the URL."""
        self._user = user
        return self

    def set_password(self, password: str) -> PostgresSourceBuilder:
        """The password, if it is not in the URL."""
        self._password = password
        return self

    def set_properties(self, properties: Mapping[str, str]) -> PostgresSourceBuilder:
        """Further connection parameters by their libpq names: ``sslmode``, ``sslrootcert`` …"""
        self._properties.update(properties)
        return self

    def set_connection_options(self, options: PostgresConnectionOptions) -> PostgresSourceBuilder:
        """All of the above at once."""
        self._connection = options
        return self

    def set_table(self, table: str) -> PostgresSourceBuilder:
        """The table to read, with its schema if that is not in the search path."""
        self._settings["table"] = split_name(table)
        return self

    def set_columns(self, *columns: str) -> PostgresSourceBuilder:
        """The columns to read; all unless set."""
        self._settings["columns"] = _names("set_columns", columns)
        return self

    def set_query(self, query: str, parameters: Sequence[Sequence[Any]] | None = None) -> PostgresSourceBuilder:
        """A SELECT, instead of a table; with parameters, the values of its ``?`` for each split."""
        if not isinstance(query, str) or not query.strip():
            raise InvalidProgramError("PostgresSource: the query is empty.")
        self._settings["query"] = query
        self._settings["parameters"] = None if parameters is None else tuple(map(tuple, parameters))
        return self

    def set_partition_column(
        self, column: str, *, lower_bound: Any = None, upper_bound: Any = None, partitions: int | None = None
    ) -> PostgresSourceBuilder:
        """Cuts what is read into splits, by a column of numbers, dates or timestamps.

        With bounds only rows between them are read, both included; without, all rows, between the least and the
        greatest value that are there. There are as many splits as readers unless ``partitions`` says otherwise.
        """
        if (lower_bound is None) != (upper_bound is None):
            raise InvalidProgramError("PostgresSource: a partition column needs both bounds or none.")
        if partitions is not None:
            _positive("partitions", partitions)
        if lower_bound is not None:
            boundaries(lower_bound, upper_bound, 1)
            if lower_bound > upper_bound:
                raise InvalidProgramError(
                    f"PostgresSource: the lower bound {lower_bound!r} is above the upper bound {upper_bound!r}."
                )
        self._settings.update(
            partition_column=column, lower_bound=lower_bound, upper_bound=upper_bound, partitions=partitions
        )
        return self

    def set_key_columns(self, *columns: str) -> PostgresSourceBuilder:
        """Columns that together are unique and never NULL, by which rows are ordered; the primary key unless set."""
        self._settings["key"] = _names("set_key_columns", columns)
        return self

    def set_polling(self, column: str, interval_ms: int) -> PostgresSourceBuilder:
        """Looks again and again for rows in which a column, unique and increasing, is greater than the last seen.

        The source does not end. A row is missed if it becomes visible after one with a greater value was read, which
        happens when transactions overlap.
        """
        self._settings["poll_interval_ms"] = _positive("set_polling", interval_ms)
        return self.set_key_columns(column)

    def set_fetch_size(self, rows: int) -> PostgresSourceBuilder:
        """How many rows are fetched at once; 2000 unless set."""
        self._settings["fetch_size"] = _positive("set_fetch_size", rows)
        return self

    def build(self) -> PostgresSource:
        """The source."""
        connection = self._connection or PostgresConnectionOptions(
            self._url or "", self._user, self._password, properties=dict(self._properties)
        )
        settings = SourceSettings(connection=connection, **self._settings)
        if (settings.query is None) == (not settings.table):
            raise InvalidProgramError(
                "PostgresSource: a table or a query is needed, and not both.", hint="Call set_table() or set_query()."
            )
        cut = settings.partition_column is not None
        if cut and settings.parameters is not None:
            raise InvalidProgramError(
                "PostgresSource: splits come from parameters or from a partition column, not both."
            )
        if settings.poll_interval_ms is not None and (cut or settings.parameters is not None):
            raise InvalidProgramError("PostgresSource: with set_polling() there is one split only.")
        return PostgresSource(settings)


def _names(method: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise InvalidProgramError(f"PostgresSource: {method}() takes names of columns, not {columns!r}.")
    return columns


def _positive(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise InvalidProgramError(f"PostgresSource: {what} must be a positive integer, not {value!r}.")
    return value
