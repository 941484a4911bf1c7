"""The builder of a PostgresSink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.postgres.connection import PostgresConnectionOptions, split_name
from firesteel.connectors.postgres.sink.settings import SinkSettings
from firesteel.spi.sink import DeliveryGuarantee

if TYPE_CHECKING:
    from firesteel.connectors.postgres.sink.sink import PostgresSink

__all__ = ["PostgresSinkBuilder"]


class PostgresSinkBuilder:
    """Builds a PostgresSink. ``build()`` checks the settings without connecting to the server."""

    def __init__(self, create: Callable[[SinkSettings], PostgresSink]) -> None:
        self._create = create
        self._connection: PostgresConnectionOptions | None = None
        self._url: str | None = None
        self._user: str | None = None
        self._password: str | None = None
        self._properties: dict[str, str] = {}
        self._table: tuple[str, ...] = ()
        self._columns: tuple[str, ...] | None = None
        self._is_upsert = False
        self._key: tuple[str, ...] | None = None
        self._statement: str | None = None
        self._guarantee: DeliveryGuarantee | None = None
        self._staging: tuple[str, ...] | None = None
        self._mapper: Callable[[Any], Sequence[Any]] | None = None
        self._batch_size = 5000
        self._batch_interval_ms = 0
        self._max_retries = 3

    def set_url(self, url: str) -> PostgresSinkBuilder:
        """Sets the URL: ``postgresql://user:password@host:port/database``, or a ``jdbc:postgresql:`` URL."""
        self._url = url
        return self

    def set_username(self, user: str) -> PostgresSinkBuilder:
        """Sets the user, if it is not in the URL."""
        self._user = user
        return self

    def set_password(self, password: str) -> PostgresSinkBuilder:
        """Sets the password, if it is not in the URL."""
        self._password = password
        return self

    def set_properties(self, properties: Mapping[str, str]) -> PostgresSinkBuilder:
        """Sets further connection parameters by their libpq names: ``sslmode``, ``sslrootcert`` …"""
        self._properties.update(properties)
        return self

    def set_connection_options(self, options: PostgresConnectionOptions) -> PostgresSinkBuilder:
        """Sets URL, user, password and connection parameters together."""
        self._connection = options
        return self

    def set_table(self, table: str) -> PostgresSinkBuilder:
        """Sets the table, with its schema if that is not in the search path."""
        self._table = split_name(table)
        return self

    def set_columns(self, *columns: str) -> PostgresSinkBuilder:
        """Sets the columns, in the order of a record's values. The default is all columns that are not generated."""
        self._columns = _names("set_columns", columns)
        return self

    def set_upsert_key(self, *columns: str) -> PostgresSinkBuilder:
        """Enables upsert mode: a record replaces the row with its key, a record of kind DELETE deletes it.

        The columns are those of the primary key or of a unique index; without any, of the primary key.
        """
        self._is_upsert = True
        self._key = _names("set_upsert_key", columns) if columns else None
        return self

    def set_delivery_guarantee(self, guarantee: DeliveryGuarantee) -> PostgresSinkBuilder:
        """Sets the delivery guarantee. The default is AT_LEAST_ONCE, in upsert mode EXACTLY_ONCE."""
        if not isinstance(guarantee, DeliveryGuarantee):
            raise InvalidProgramError(f"PostgresSink: a DeliveryGuarantee is needed, not {guarantee!r}.")
        self._guarantee = guarantee
        return self

    def set_staging_table(self, table: str) -> PostgresSinkBuilder:
        """Sets the table that holds the rows of an exactly-once append until their checkpoint is complete.

        The default is ``<table>_firesteel_staging``.
        """
        self._staging = split_name(table)
        return self

    def set_record_mapper(self, mapper: Callable[[Any], Sequence[Any]]) -> PostgresSinkBuilder:
        """Sets the function that returns a record's values. Without it, records are Rows, tuples, lists or dicts."""
        if not callable(mapper):
            raise InvalidProgramError(f"PostgresSink: the record mapper must be a function, not {mapper!r}.")
        self._mapper = mapper
        return self

    def set_batch_size(self, records: int) -> PostgresSinkBuilder:
        """Sets the maximum number of records of a batch. The default is 5000."""
        self._batch_size = _number("set_batch_size", records, 1)
        return self

    def set_batch_interval_ms(self, milliseconds: int) -> PostgresSinkBuilder:
        """Sets the time after which a batch is written even if it is not full. The default, 0, disables it."""
        self._batch_interval_ms = _number("set_batch_interval_ms", milliseconds, 0)
        return self

    def set_max_retries(self, retries: int) -> PostgresSinkBuilder:
        """Sets the maximum number of retries of a batch after a lost connection. The default is 3."""
        self._max_retries = _number("set_max_retries", retries, 0)
        return self

    def _set_statement(self, statement: str) -> PostgresSinkBuilder:
        self._statement = statement
        return self

    def build(self) -> PostgresSink:
        """Returns the sink."""
        connection = self._connection or PostgresConnectionOptions(
            self._url or "", self._user, self._password, properties=dict(self._properties)
        )
        if self._statement is None and not self._table:
            raise InvalidProgramError("PostgresSink: there is no table to write to.", hint="Call set_table().")
        if self._columns is not None and (missing := [name for name in self._key or () if name not in self._columns]):
            raise InvalidProgramError(
                f"PostgresSink: the key column {missing[0]!r} is not among those written.",
                hint="Add it to set_columns().",
            )
        natural = DeliveryGuarantee.EXACTLY_ONCE if self._is_upsert else DeliveryGuarantee.AT_LEAST_ONCE
        guarantee = self._guarantee or natural
        if self._statement is not None and guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise InvalidProgramError(
                "PostgresSink: a statement of one's own is executed at least once, not exactly once.",
                hint="Give set_table() instead, with set_upsert_key() where records replace each other.",
            )
        if self._staging is not None and (self._is_upsert or guarantee is not DeliveryGuarantee.EXACTLY_ONCE):
            raise InvalidProgramError(
                "PostgresSink: only an append with EXACTLY_ONCE has a staging table.",
                hint="Call set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE), or drop set_staging_table().",
            )
        return self._create(
            SinkSettings(
                connection=connection,
                table=self._table,
                columns=self._columns,
                is_upsert=self._is_upsert,
                key=self._key,
                statement=self._statement,
                guarantee=guarantee,
                staging=self._staging,
                mapper=self._mapper,
                batch_size=self._batch_size,
                batch_interval_ms=self._batch_interval_ms,
                max_retries=self._max_retries,
            )
        )


def _names(method: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise InvalidProgramError(f"PostgresSink: {method}() takes names of columns, not {columns!r}.")
    if len(set(columns)) < len(columns):
        raise InvalidProgramError(f"PostgresSink: {method}() names a column twice: {', '.join(columns)}.")
    return columns


def _number(method: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidProgramError(f"PostgresSink: {method}() takes an integer of at least {least}, not {value!r}.")
    return value
