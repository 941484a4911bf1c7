"""Change data capture: the rows of PostgreSQL tables, then every change of them."""

from __future__ import annotations

from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration
from firesteel.connectors.postgres.cdc.change_record import (
    DebeziumDeserializationSchema,
    RowDebeziumDeserializationSchema,
)
from firesteel.connectors.postgres.cdc.enumerator import CdcEnumerator, CdcEnumeratorState
from firesteel.connectors.postgres.cdc.options import CdcOptions, StartupOptions
from firesteel.connectors.postgres.cdc.reader import CdcReader
from firesteel.connectors.postgres.cdc.split import CdcSplit
from firesteel.connectors.postgres.connection import PostgresConnectionOptions
from firesteel.spi.source import Boundedness, ReaderContext, Source, SplitEnumeratorContext

__all__ = ["PostgresCdcSource", "PostgresCdcSourceBuilder"]


class PostgresCdcSource(Source[CdcSplit]):
    """Reads tables in chunks, by any number of readers, and then the changes from the server's log, by one of them.

    Every row and every change comes once, in the order of the log, wherever the job is stopped and resumed. The
    server keeps its log from the last checkpoint on: a job that is stopped for good should be followed by
    :meth:`drop_slot`.
    """

    name: ClassVar[str] = "PostgreSQL CDC"
    emits_own_records = True

    def __init__(self, options: CdcOptions, deserializer: DebeziumDeserializationSchema) -> None:
        self.options = options
        self.deserializer = deserializer

    @staticmethod
    def builder() -> PostgresCdcSourceBuilder:
        """Begins to describe a source."""
        return PostgresCdcSourceBuilder()

    def __repr__(self) -> str:
        return f"PostgresCdcSource({self.options.connection.describe()}, slot {self.options.slot_name})"

    def get_boundedness(self) -> Boundedness:
        """Unbounded, unless only the tables are read."""
        return Boundedness.CONTINUOUS_UNBOUNDED if self.options.reads_log else Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> CdcEnumerator:
        """An enumerator that begins where the startup options specify."""
        return CdcEnumerator(context, self.options)

    def restore_enumerator(self, context: SplitEnumeratorContext, state: CdcEnumeratorState) -> CdcEnumerator:
        """An enumerator that continues with the chunks that are left."""
        return CdcEnumerator(context, self.options, state)

    def create_reader(self, context: ReaderContext) -> CdcReader:
        """A reader of chunks, and perhaps of the log."""
        return CdcReader(context, self.options, self.deserializer)

    def drop_slot(self, *, publication: bool = False) -> None:
        """Has the server no longer keep its log for this source; for when its job will never go on."""
        from firesteel.connectors.postgres.cdc.capture_setup import drop_slot

        drop_slot(self.options, publication=publication)


class PostgresCdcSourceBuilder:
    """Describes a PostgresCdcSource. Names are those of Flink CDC's ``PostgresSourceBuilder`` where it has them."""

    def __init__(self) -> None:
        self._url: str | None = None
        self._host: str | None = None
        self._port = 5432
        self._database: str | None = None
        self._connection: dict[str, Any] = {}
        self._settings: dict[str, Any] = {"schema_list": (), "table_list": ()}
        self._deserializer: DebeziumDeserializationSchema = RowDebeziumDeserializationSchema()

    def hostname(self, hostname: str) -> PostgresCdcSourceBuilder:
        """The server's host."""
        self._host = hostname
        return self

    def port(self, port: int) -> PostgresCdcSourceBuilder:
        """The server's port, 5432 unless given."""
        self._port = port
        return self

    def database(self, database: str) -> PostgresCdcSourceBuilder:
        """The database the tables are in."""
        self._database = database
        return self

    def url(self, url: str) -> PostgresCdcSourceBuilder:
        """Instead of hostname, port and database: ``postgresql://host:port/database``."""
        self._url = url
        return self

    def username(self, username: str) -> PostgresCdcSourceBuilder:
        """The user; needs the REPLICATION attribute and SELECT on the tables."""
        self._connection["user"] = username
        return self

    def password(self, password: str) -> PostgresCdcSourceBuilder:
        """The user's password."""
        self._connection["password"] = password
        return self

    def connection_properties(self, **properties: str) -> PostgresCdcSourceBuilder:
        """Further libpq parameters, such as ``sslmode``."""
        self._connection["properties"] = properties
        return self

    def connect_timeout(self, timeout: Duration) -> PostgresCdcSourceBuilder:
        """How long to wait for a connection, and for a slot that is still in use; 30 seconds unless given."""
        self._connection["connect_timeout_s"] = max(round(timeout.to_millis() / 1000), 1)
        return self

    def connect_max_retries(self, retries: int) -> PostgresCdcSourceBuilder:
        """How often to reconnect in a row before the job fails; 3 unless given."""
        return self._set("connect_max_retries", retries)

    def schema_list(self, *schemas: str) -> PostgresCdcSourceBuilder:
        """Regular expressions for the schemas; all tables in them, unless ``table_list`` says which."""
        return self._set("schema_list", schemas)

    def table_list(self, *tables: str) -> PostgresCdcSourceBuilder:
        """Regular expressions for ``schema.table``."""
        return self._set("table_list", tables)

    def slot_name(self, name: str) -> PostgresCdcSourceBuilder:
        """The replication slot, created if there is none. Every source needs its own."""
        return self._set("slot_name", name)

    def publication_name(self, name: str) -> PostgresCdcSourceBuilder:
        """The publication that the slot is read through."""
        return self._set("publication_name", name)

    def publication_autocreate_mode(self, mode: str) -> PostgresCdcSourceBuilder:
        """``filtered`` (default): created or extended for the tables; ``all_tables``; ``disabled``: it must exist."""
        return self._set("publication_autocreate_mode", mode)

    def decoding_plugin_name(self, name: str) -> PostgresCdcSourceBuilder:
        """Only ``pgoutput``, which every server has."""
        if name != "pgoutput":
            raise InvalidProgramError(
                f"PostgresCdcSource: the plugin '{name}' is not supported.", hint="pgoutput needs no installation."
            )
        return self

    def startup_options(self, startup: StartupOptions) -> PostgresCdcSourceBuilder:
        """Where to begin; the tables first unless given."""
        return self._set("startup", startup)

    def changelog_mode(self, mode: str) -> PostgresCdcSourceBuilder:
        """``all`` (default; needs REPLICA IDENTITY FULL) or ``upsert`` (only the row after an update)."""
        return self._set("changelog_mode", mode)

    def deserializer(self, deserializer: DebeziumDeserializationSchema) -> PostgresCdcSourceBuilder:
        """What becomes of a change; rows with their kind unless given."""
        self._deserializer = deserializer
        return self

    def split_size(self, rows: int) -> PostgresCdcSourceBuilder:
        """About how many rows a chunk has; 8096 unless given."""
        return self._set("split_size", rows)

    def fetch_size(self, rows: int) -> PostgresCdcSourceBuilder:
        """How many rows of a table are fetched at once; 1024 unless given."""
        return self._set("fetch_size", rows)

    def heartbeat_interval(self, interval: Duration) -> PostgresCdcSourceBuilder:
        """How often the server is told that the reader is there, and the tables are compared with what was captured.

        10 seconds unless given. Must be less than the server's ``wal_sender_timeout``.
        """
        return self._set("heartbeat_interval_s", interval.to_millis() / 1000)

    def slot_creation_timeout(self, timeout: Duration) -> PostgresCdcSourceBuilder:
        """How long to wait for running transactions before the capture can begin; 5 minutes unless given."""
        return self._set("slot_creation_timeout_s", timeout.to_millis() / 1000)

    def lsn_commit_checkpoints_delay(self, checkpoints: int) -> PostgresCdcSourceBuilder:
        """From how many older checkpoints the job can still go on; 3 unless given."""
        return self._set("lsn_commit_checkpoints_delay", checkpoints)

    def close_idle_readers(self, close: bool) -> PostgresCdcSourceBuilder:
        """Whether readers end when all tables are read and another one has the log; True unless given.

        A reader that stays holds back event time. (In Flink CDC they stay unless told otherwise.)
        """
        return self._set("close_idle_readers", close)

    def schema_change_behavior(self, behavior: str) -> PostgresCdcSourceBuilder:
        """What an altered table does: ``exception`` (default), ``evolve`` or ``ignore``.

        With ``evolve`` rows have the columns the table has at that time, with ``ignore`` those it had at first; with
        both, a renamed table is read on under the name it was captured with.
        """
        return self._set("schema_change_behavior", behavior)

    def truncate_behavior(self, behavior: str) -> PostgresCdcSourceBuilder:
        """What TRUNCATE does: ``exception`` (default) or ``ignore``."""
        return self._set("truncate_behavior", behavior)

    def unavailable_value_placeholder(self, value: Any) -> PostgresCdcSourceBuilder:
        """What to put in place of a large value that an update did not change; an error unless given.

        Does not happen with REPLICA IDENTITY FULL.
        """
        return self._set("unavailable_value", value)

    def build(self) -> PostgresCdcSource:
        """The source."""
        if (self._url is None) == (self._host is None):
            raise InvalidProgramError("PostgresCdcSource: give either a hostname or a url.")
        url = self._url
        if url is None:
            if self._database is None:
                raise InvalidProgramError("PostgresCdcSource: give the database.")
            url = f"host={_word(str(self._host))} port={self._port} dbname={_word(self._database)}"
        return PostgresCdcSource(
            CdcOptions(PostgresConnectionOptions(url, **self._connection), **self._settings), self._deserializer
        )

    def _set(self, name: str, value: Any) -> PostgresCdcSourceBuilder:
        self._settings[name] = value
        return self


def _word(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'" if not value or any(c in escaped for c in " \\'") else value
