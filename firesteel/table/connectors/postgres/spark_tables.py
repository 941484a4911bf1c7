"""Tables of PostgreSQL that Spark's JDBC reader reads in bounded queries.

Spark reads a table if its session has PostgreSQL's driver and the columns that are needed have the types that the table
declares. Other tables are read by a job of Firesteel. So that values are the same by both ways and do not depend on the
time zone of a JVM, dates and timestamps are fetched as numbers. Texts have the collation "C", in which the server's
order is Spark's, since Spark gives conditions to the server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from firesteel.common.errors import FiresteelError
from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect, import_psycopg, split_name
from firesteel.connectors.postgres.source.enumerator import boundaries
from firesteel.table.connectors.postgres.conditions import quoted_name
from firesteel.table.evaluation.spark_text import spark_type
from firesteel.table.names import quoted
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType, RowType

if TYPE_CHECKING:
    from firesteel.table.connectors.postgres.jdbc import JdbcTableSource

__all__ = ["DRIVER", "SparkTable", "has_driver", "spark_table"]

DRIVER = "org.postgresql.Driver"
_MIN_VERSION = 140_000
"""From here on the server computes seconds since 1970 exactly."""
_FETCH_SIZE = 2000
_PARAMETERS = {
    "options": "options",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "application_name": "ApplicationName",
    "connect_timeout": "connectTimeout",
    "channel_binding": "channelBinding",
}
"""libpq's names of parameters and those of the driver."""
_IGNORED = {
    "host",
    "port",
    "dbname",
    "user",
    "password",
    "client_encoding",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
}
_VARCHAR = 1043
_TEXTS = (25, _VARCHAR)
_NUMERIC, _DATE, _TIMESTAMP, _TIMESTAMPTZ = 1700, 1082, 1114, 1184
_SAME: dict[int, type[LogicalType]] = {
    16: t.BooleanType,
    17: t.VarBinaryType,
    20: t.BigIntType,
    21: t.SmallIntType,
    23: t.IntType,
    700: t.FloatType,
    701: t.DoubleType,
}


@dataclass(frozen=True)
class Column:
    """A column: its type, what the server sends, and what Spark makes of that."""

    name: str
    type: LogicalType
    sent: str
    received: str


@dataclass(frozen=True)
class SparkTable:
    """A table, and how Spark reads it."""

    url: str
    properties: Mapping[str, str]
    query: str
    columns: tuple[Column, ...]
    predicates: tuple[str, ...]

    def describe(self) -> str:
        """What EXPLAIN shows."""
        cut = f", {len(self.predicates)} partitions" if self.predicates else ""
        return f"Spark (jdbc{cut}): {self.query}"

    def dataframe(self, session: Any) -> Any:
        """The rows."""
        table = f"({self.query}) AS firesteel_query"
        properties = dict(self.properties)
        if self.predicates:
            found = session.read.jdbc(self.url, table, predicates=list(self.predicates), properties=properties)
        else:
            found = session.read.jdbc(self.url, table, properties=properties)
        return found.selectExpr(*(f"{column.received} AS {quoted(column.name)}" for column in self.columns))


def has_driver(session: Any) -> bool:
    """Whether the JVM of a session has the driver, also from jars that were added."""
    loader = session._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader.getResource(f"{DRIVER.replace('.', '/')}.class") is not None


def spark_table(source: JdbcTableSource) -> SparkTable | str:
    """How Spark reads the rows of a table, or why it cannot."""
    options = PostgresConnectionOptions(source.url, source.username, source.password)
    try:
        address = _address(options)
        if isinstance(address, str):
            return address
        columns, names = _columns(options, source.table, source.type, source.partitions)
    except FiresteelError as error:
        return error.message
    if isinstance(columns, str):
        return columns
    url, properties = address
    where = f" WHERE {' AND '.join(source.conditions)}" if source.conditions else ""
    limit = "" if source.limit is None else f" LIMIT {source.limit}"
    predicates: list[str] = []
    sent = [column.sent for column in columns]
    if source.partitions is not None:
        partition = quoted_name("firesteel_partition")
        sent.append(f"{quoted_name(source.partitions.column)} AS {partition}")
        bounds = boundaries(source.partitions.lower, source.partitions.upper, source.partitions.count)
        last = len(bounds) - 2
        predicates = [
            f"{partition} >= {bounds[i]} AND {partition} {'<=' if i == last else '<'} {bounds[i + 1]}"
            for i in range(last + 1)
        ]
        limit = ""  # the server would count rows outside of the bounds
    table = ".".join(map(quoted_name, names))
    query = f"SELECT {', '.join(sent)} FROM {table}{where}{limit}"  # noqa: S608 - names are quoted
    properties["fetchsize"] = str(source.fetch_size or _FETCH_SIZE)
    return SparkTable(url, properties, query, columns, tuple(predicates))


def _address(options: PostgresConnectionOptions) -> tuple[str, dict[str, str]] | str:
    """The URL of the driver and its properties."""
    import_psycopg()
    from psycopg.conninfo import conninfo_to_dict

    given: dict[str, Any] = {key: value for key, value in conninfo_to_dict(options.conninfo()).items() if value}
    host, user = str(given.get("host", "")), given.get("user")
    if not host or host.startswith("/") or "," in host:
        return "the address of the server is not one host"
    if user is None or ("password" not in given and "PGPASSWORD" in os.environ):
        return "user and password are not among the options of the table"
    others = given.keys() - _PARAMETERS.keys() - _IGNORED
    if others:
        return f"the driver does not know {', '.join(sorted(others))}"
    parameters = {_PARAMETERS[key]: str(given[key]) for key in given if key in _PARAMETERS}
    query = "&".join(f"{key}={quote(value, safe='')}" for key, value in parameters.items())
    shown = f"[{host}]" if ":" in host else host
    url = f"jdbc:postgresql://{shown}:{given.get('port', 5432)}/{quote(str(given.get('dbname', user)), safe='')}"
    properties = {"user": str(user), "driver": DRIVER}
    if "password" in given:
        properties["password"] = str(given["password"])
    return f"{url}?{query}" if query else url, properties


def _columns(
    options: PostgresConnectionOptions, table: str, row_type: RowType, partitions: Any
) -> tuple[tuple[Column, ...] | str, Sequence[str]]:
    from psycopg import Error

    names = split_name(table)
    wanted = [*row_type.field_names, *([] if partitions is None else [partitions.column])]
    selected = ", ".join(map(quoted_name, wanted))
    with connect(options, name="firesteel planner") as connection:
        if connection.info.server_version < _MIN_VERSION:
            return "the server is older than PostgreSQL 14", names
        try:
            text = f"SELECT {selected} FROM {'.'.join(map(quoted_name, names))} LIMIT 0"  # noqa: S608
            described = connection.execute(text.encode()).description or []
        except Error as error:
            return " ".join(str(error).split()), names
    if partitions is not None and described[-1].type_code not in (20, 21, 23):
        return f"the column '{partitions.column}' that cuts the table is not an integer", names
    found = []
    for part, column in zip(row_type.fields, described, strict=False):
        made = _column(part.name, part.type, column)
        if made is None:
            return f"the column '{part.name}' has the type {column.type_display} in PostgreSQL", names
        found.append(made)
    return tuple(found), names


def _column(name: str, type_: LogicalType, found: Any) -> Column | None:
    """A column whose values both ways of reading give alike."""
    sent, received = quoted_name(name), quoted(name)
    code = found.type_code
    if code in _TEXTS and isinstance(type_, t.VarCharType):
        longest = found.display_size if code == _VARCHAR else None
        if (t.MAX_LENGTH if longest is None else longest) > type_.length:
            return None
        return Column(name, type_, f'{sent} COLLATE "C" AS {sent}', received)
    if code in _SAME:
        is_same = type_ == _SAME[code](nullable=type_.nullable)
        return Column(name, type_, sent, received) if is_same else None
    if code == _NUMERIC and isinstance(type_, t.DecimalType):
        is_same = (found.precision, found.scale) == (type_.precision, type_.scale)
        return Column(name, type_, sent, received) if is_same else None
    if code == _DATE and isinstance(type_, t.DateType):
        return Column(name, type_, f"{sent} - DATE '1970-01-01' AS {sent}", f"date_from_unix_date({received})")
    micros = f"CAST(EXTRACT(EPOCH FROM {sent}) * 1000000 AS bigint) AS {sent}"
    digits = 6 if found.precision is None else found.precision
    if code == _TIMESTAMP and isinstance(type_, t.TimestampType) and digits <= type_.precision:
        return Column(name, type_, micros, f"CAST(timestamp_micros({received}) AS {spark_type(type_)})")
    if code == _TIMESTAMPTZ and isinstance(type_, t.LocalZonedTimestampType) and digits <= type_.precision:
        return Column(name, type_, micros, f"timestamp_micros({received})")
    return None
