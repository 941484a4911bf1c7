"""The splits of a PostgresSource, and the SQL that reads one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.connection import PostgresConnectionOptions, describe_table
from firesteel.connectors.postgres.statements import identifier, identifiers, to_placeholders

if TYPE_CHECKING:
    from psycopg import sql

__all__ = ["KeyType", "PostgresSplit", "SourceSettings", "from_clause", "select_statement"]


@dataclass(frozen=True)
class SourceSettings:
    """The settings of a PostgresSource; made by its builder."""

    connection: PostgresConnectionOptions
    table: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    query: str | None = None
    parameters: tuple[tuple[Any, ...], ...] | None = None
    """The values of the query's placeholders, a split each."""
    partition_column: str | None = None
    lower_bound: Any = None
    upper_bound: Any = None
    partitions: int | None = None
    key: tuple[str, ...] | None = None
    poll_interval_ms: int | None = None
    """How often to look for new rows; None if the source ends."""
    fetch_size: int = 2000

    def describe(self) -> str:
        """What is read, for messages."""
        return describe_table(self.table) if self.table else "the query"


@dataclass(frozen=True)
class KeyType:
    """The type of a key column; ``as_text`` if only the text of a value names it exactly."""

    name: str
    as_text: bool = False


@dataclass(frozen=True)
class PostgresSplit:
    """Rows whose partition column is from ``lower`` on, up to ``upper``; a bound that is None is none.

    ``position`` is the key of the last row read; without a key, how many rows were read.
    """

    split_id: str
    key: tuple[str, ...] = ()
    lower: Any = None
    upper: Any = None
    includes_upper: bool = False
    only_null: bool = False
    parameters: tuple[Any, ...] = ()
    position: Any = field(default=None)
    key_types: tuple[KeyType, ...] = ()
    """Of the columns of the key; empty in checkpoints of earlier versions."""

    @property
    def text_keys(self) -> tuple[str, ...]:
        """The columns of the key whose text is read beside the columns asked for."""
        return tuple(name for name, each in zip(self.key, self.key_types, strict=False) if each.as_text)


def select_statement(settings: SourceSettings, split: PostgresSplit) -> tuple[sql.Composed, list[Any]]:
    """The rows of a split behind its position, and the values of the statement's placeholders."""
    from psycopg import sql

    conditions: list[sql.Composable] = []
    values: list[Any] = list(split.parameters)
    if settings.partition_column is not None:
        column = identifier(settings.partition_column)
        bounds = ((">=", split.lower), ("<=" if split.includes_upper else "<", split.upper))
        given = [(comparison, bound) for comparison, bound in bounds if bound is not None]
        for comparison, bound in given:
            conditions.append(sql.SQL("{} {} %s").format(column, sql.SQL(comparison)))
            values.append(bound)
        if not given:
            conditions.append(sql.SQL("{} IS NULL" if split.only_null else "{} IS NOT NULL").format(column))
    order = sql.SQL("")
    if split.key:
        key = identifiers(split.key)
        order = sql.SQL(" ORDER BY {}").format(key)  # type: ignore[assignment]
        if split.position is not None:
            conditions.append(sql.SQL("({}) > ({})").format(key, _position(split)))
            values += split.position
    where = sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(conditions)) if conditions else sql.SQL("")
    statement = sql.SQL("SELECT {} FROM {}{}{}").format(_columns(settings, split), from_clause(settings), where, order)
    return statement, values


def from_clause(settings: SourceSettings) -> sql.Composable:
    """The table or the query, in a statement with parameters."""
    from psycopg import sql

    if settings.query is None:
        return identifier(*settings.table)
    query = settings.query.strip().rstrip(";")
    query = to_placeholders(query)[0] if settings.parameters is not None else query.replace("%", "%%")
    return sql.SQL("({}\n) AS firesteel_query").format(sql.SQL(query))


def _columns(settings: SourceSettings, split: PostgresSplit) -> sql.Composable:
    from psycopg import sql

    # the key is needed for the position; what was not asked for is cut off again
    texts = [
        sql.SQL("{}::text AS {}").format(identifier(name), identifier(f"firesteel_key_{index}"))
        for index, name in enumerate(split.text_keys)
    ]
    if settings.columns is None:
        return sql.SQL(", ").join([sql.SQL("*"), *texts])
    names = [*settings.columns, *(name for name in split.key if name not in settings.columns)]
    return sql.SQL(", ").join([identifiers(names), *texts])


def _position(split: PostgresSplit) -> sql.Composable:
    """The placeholders of a key: a value is compared as what it is in the column, not as what Python has made of it."""
    from psycopg import sql

    if not split.key_types:
        return sql.SQL(", ").join([sql.SQL("%s")] * len(split.key))
    types = [sql.SQL(each.name.replace("%", "%%")) for each in split.key_types]
    return sql.SQL(", ").join(sql.SQL("%s::{}").format(each) for each in types)
