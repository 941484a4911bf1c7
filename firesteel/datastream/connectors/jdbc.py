"""PyFlink's JDBC sink, for PostgreSQL: no Java, no driver, no other database."""

from __future__ import annotations

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.postgres.connection import PostgresConnectionOptions
from firesteel.connectors.postgres.sink.settings import SinkSettings
from firesteel.connectors.postgres.sink.sink import PostgresSink
from firesteel.connectors.postgres.statements import to_placeholders

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]

_DRIVER = "org.postgresql.Driver"


class JdbcSink(PostgresSink):
    """Executes a statement for each record, in batches, at least once; for ``add_sink`` and ``sink_to``.

    For exactly-once see :class:`firesteel.datastream.connectors.postgres.PostgresSink`. A statement that upserts
    (``INSERT … ON CONFLICT … DO UPDATE``) leaves the right result after a failure, too.
    """

    name = "JDBC Sink"

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Returns a sink that fills the ``?`` of a statement with a record's values, in order."""
        _, count = to_placeholders(sql)
        if not isinstance(type_info, RowTypeInfo):
            raise InvalidProgramError(f"JdbcSink: type_info must be a row type, not {type_info!r}.")
        if count != len(type_info.get_field_types()):
            raise InvalidProgramError(
                f"JdbcSink: the statement has {count} placeholders, but the type {len(type_info.get_field_types())} "
                "fields.",
                hint="There is one ? for each field, in the order of the fields.",
            )
        execution = jdbc_execution_options or JdbcExecutionOptions.defaults()
        return JdbcSink(
            SinkSettings(
                connection=jdbc_connection_options.to_postgres(),
                statement=sql,
                batch_size=execution.get_batch_size(),
                batch_interval_ms=execution.get_batch_interval_ms(),
                max_retries=execution.get_max_retries(),
            )
        )


class JdbcConnectionOptions:
    """Connection settings of a database."""

    def __init__(
        self, url: str, driver_name: str | None = None, user_name: str | None = None, password: str | None = None
    ) -> None:
        if driver_name is not None and driver_name != _DRIVER:
            raise InvalidProgramError(
                f"JDBC: the driver '{driver_name}' is not there: no other database than PostgreSQL is supported.",
                hint=f"Omit the driver name, or use {_DRIVER}.",
            )
        self._options = PostgresConnectionOptions(url, user_name, password)
        self._driver_name = driver_name

    def get_db_url(self) -> str:
        """The URL."""
        return self._options.url

    def get_driver_name(self) -> str | None:
        """The driver's name, if it was given."""
        return self._driver_name

    def get_user_name(self) -> str | None:
        """The user, if it was given beside the URL."""
        return self._options.user

    def get_password(self) -> str | None:
        """The password, if it was given beside the URL."""
        return self._options.password

    def to_postgres(self) -> PostgresConnectionOptions:
        """Returns these options in the connector's form."""
        return self._options

    class JdbcConnectionOptionsBuilder:
        """Builds JdbcConnectionOptions."""

        def __init__(self) -> None:
            self._url = ""
            self._driver_name: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """``jdbc:postgresql://host:port/database``."""
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """``org.postgresql.Driver``; not needed."""
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Sets the user."""
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The user's password."""
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """The options."""
            return JdbcConnectionOptions(self._url, self._driver_name, self._user_name, self._password)


class JdbcExecutionOptions:
    """Batch settings: size, interval and retries."""

    def __init__(self, batch_interval_ms: int = 0, batch_size: int = 5000, max_retries: int = 3) -> None:
        for name, value, least in (
            ("batch interval", batch_interval_ms, 0),
            ("batch size", batch_size, 1),
            ("number of retries", max_retries, 0),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidProgramError(f"JDBC: the {name} must be at least {least}, not {value!r}.")
        self._batch_interval_ms = batch_interval_ms
        self._batch_size = batch_size
        self._max_retries = max_retries

    def get_batch_interval_ms(self) -> int:
        """The time after which a batch is written even if it is not full; 0 disables it."""
        return self._batch_interval_ms

    def get_batch_size(self) -> int:
        """The maximum number of records of a batch."""
        return self._batch_size

    def get_max_retries(self) -> int:
        """The maximum number of retries of a batch."""
        return self._max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Batches of 5000 records, no interval, three retries."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Returns a builder with the defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds JdbcExecutionOptions."""

        def __init__(self) -> None:
            self._size = 5000
            self._interval_ms = 0
            self._max_retries = 3

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """The maximum number of records of a batch."""
            self._size = size
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """The time after which a batch is written even if it is not full; 0 disables it."""
            self._interval_ms = interval_ms
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """The maximum number of retries of a batch."""
            self._max_retries = max_retries
            return self

        def build(self) -> JdbcExecutionOptions:
            """The options."""
            return JdbcExecutionOptions(self._interval_ms, self._size, self._max_retries)
