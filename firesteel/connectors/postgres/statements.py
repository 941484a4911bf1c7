"""The SQL of the sinks, and names in SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.postgres.table_description import PostgresColumn

if TYPE_CHECKING:
    from psycopg import sql

__all__ = [
    "STAGE",
    "StagingStatements",
    "UpsertStatements",
    "columns_of",
    "identifier",
    "identifiers",
    "to_placeholders",
]

STAGE = "firesteel_stage"
"""The column of a staging table with the batch of a row."""

BATCH = "firesteel_batch"
ORDER = "firesteel_order"
DELETE = "firesteel_delete"

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|\?|%")


def identifier(*name: str) -> sql.Identifier:
    """A name in a statement that is executed with parameters, in which a per cent sign is written twice.

    Where no parameters are given, not even none (``()``), psycopg takes the statement as it is: there, and as part of
    a COPY, it is ``sql.Identifier``.
    """
    from psycopg import sql

    return sql.Identifier(*(part.replace("%", "%%") for part in name))


def identifiers(names: Sequence[str]) -> sql.Composed:
    """Names with commas between them, in a statement that is executed with parameters."""
    from psycopg import sql

    return sql.SQL(", ").join(map(identifier, names))


def columns_of(table: tuple[str, ...], columns: Sequence[str]) -> sql.Composed:
    """``table (a, b)``."""
    from psycopg import sql

    return sql.SQL("{} ({})").format(sql.Identifier(*table), _list(columns))


def to_placeholders(statement: str) -> tuple[str, int]:
    """A statement with JDBC's ``?`` as psycopg has it, and how many there are; in quotes they mean nothing.

    >>> to_placeholders("INSERT INTO t VALUES (?, '?', ?)")
    ("INSERT INTO t VALUES (%s, '?', %s)", 2)
    """
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match[0] == "?":
            count += 1
            return "%s"
        return match[0].replace("%", "%%")

    replaced = _QUOTED.sub(replace, statement)
    if not count:
        raise InvalidProgramError(
            "The statement has no placeholder '?' for a value of the record.",
            hint="For example: INSERT INTO orders (id, price) VALUES (?, ?).",
        )
    return replaced, count


class UpsertStatements:
    """A batch goes into a temporary table; of each key the last row counts, in the order of the keys.

    That order keeps two writers of the same keys from waiting for each other in a circle.
    """

    def __init__(self, table: tuple[str, ...], columns: Sequence[PostgresColumn], key: Sequence[str]) -> None:
        from psycopg import sql

        names = [column.name for column in columns]
        batch = sql.Identifier("pg_temp", BATCH)
        fields = [
            sql.SQL("{} {}{}").format(
                sql.Identifier(column.name),
                sql.SQL(column.type_name),
                # a NULL is equal to no other: the row would be there twice after a failure
                sql.SQL(" NOT NULL" if column.name in key else ""),
            )
            for column in columns
        ]
        self.create = sql.SQL(
            "CREATE TEMPORARY TABLE {} ({} integer NOT NULL, {} boolean NOT NULL, {}) ON COMMIT DELETE ROWS"
        ).format(sql.Identifier(BATCH), sql.Identifier(ORDER), sql.Identifier(DELETE), sql.SQL(", ").join(fields))
        self.target = columns_of(("pg_temp", BATCH), [ORDER, DELETE, *names])
        last = sql.SQL(
            "(SELECT DISTINCT ON ({key}) {columns}, {delete} FROM {batch} ORDER BY {key}, {order} DESC)"
        ).format(
            key=_list(key),
            columns=_list(names),
            delete=sql.Identifier(DELETE),
            batch=batch,
            order=sql.Identifier(ORDER),
        )
        self.delete = sql.SQL("DELETE FROM {} AS t USING {} AS l WHERE l.{} AND {}").format(
            sql.Identifier(*table),
            last,
            sql.Identifier(DELETE),
            sql.SQL(" AND ").join(sql.SQL("t.{0} = l.{0}").format(sql.Identifier(name)) for name in key),
        )
        others = [name for name in names if name not in key]
        sets = sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in others)
        action = sql.SQL("UPDATE SET {}").format(sets) if others else sql.SQL("NOTHING")
        self.upsert = sql.SQL(
            "INSERT INTO {table} ({columns}) SELECT {columns} FROM {last} AS l WHERE NOT l.{delete} "
            "ON CONFLICT ({key}) DO {action}"
        ).format(
            table=sql.Identifier(*table),
            columns=_list(names),
            last=last,
            delete=sql.Identifier(DELETE),
            key=_list(key),
            action=action,
        )


class StagingStatements:
    """What is done with a staging table."""

    def __init__(self, staging: tuple[str, ...], target: tuple[str, ...], columns: Sequence[str]) -> None:
        from psycopg import sql

        self.target = columns_of(staging, [STAGE, *columns])
        with_parameters = {
            "staging": identifier(*staging),
            "target": identifier(*target),
            "columns": identifiers(columns),
            "stage": identifier(STAGE),
        }
        self.move = sql.SQL(
            "WITH moved AS (DELETE FROM {staging} WHERE {stage} = ANY(%s) RETURNING {columns}), "
            "written AS (INSERT INTO {target} ({columns}) SELECT {columns} FROM moved) SELECT count(*) FROM moved"
        ).format(**with_parameters)
        # finds what is wrong with names, types and permissions, and does nothing, nor does any trigger
        self.try_move = sql.SQL("EXPLAIN {}").format(self.move)
        self.forget = sql.SQL("DELETE FROM {staging} WHERE {stage} = ANY(%s)").format(**with_parameters)
        self.forget_range = sql.SQL("DELETE FROM {staging} WHERE {stage} BETWEEN %s AND %s").format(**with_parameters)
        self.forget_others = sql.SQL(
            "DELETE FROM {staging} WHERE {stage} BETWEEN %s AND %s AND {stage} NOT BETWEEN %s AND %s"
        ).format(**with_parameters)
        names = {
            "staging": sql.Identifier(*staging),
            "target": sql.Identifier(*target),
            "stage": sql.Identifier(STAGE),
        }
        # Rows come and go with every checkpoint: vacuum must not wait until they are a fifth of a table that is almost
        # empty. Deletions can be published, if all tables are published.
        self.create = sql.SQL(
            "CREATE TABLE {staging} ({stage} uuid NOT NULL, LIKE {target} INCLUDING DEFAULTS INCLUDING CONSTRAINTS "
            "INCLUDING GENERATED INCLUDING IDENTITY INCLUDING STORAGE) WITH (autovacuum_vacuum_scale_factor = 0, "
            "autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_cost_delay = 0);"
            "CREATE INDEX ON {staging} ({stage}); ALTER TABLE {staging} REPLICA IDENTITY FULL"
        ).format(**names)
        self.drop = sql.SQL("DROP TABLE {staging}").format(**names)
        self.is_empty = sql.SQL("SELECT NOT EXISTS (SELECT FROM {staging})").format(**names)


def _list(names: Sequence[str]) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))
