"""Checks staged rows before a checkpoint against the unique indexes and foreign keys of the target."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.errors import PostgresError, hint_for
from firesteel.connectors.postgres.statements import STAGE, identifier, identifiers
from firesteel.connectors.postgres.table_description import PostgresTable

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

__all__ = ["CommitChecks", "StagedRows"]

_UNIQUE, _FOREIGN_KEY = "23505", "23503"

# not those of the table to itself: the row referred to may be staged, too
_FOREIGN_KEYS = """
    SELECT f.conname, n.nspname, c.relname,
           (SELECT array_agg(a.attname ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY AS k(number, n)
            JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number),
           (SELECT array_agg(a.attname ORDER BY k.n) FROM unnest(f.confkey) WITH ORDINALITY AS k(number, n)
            JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number)
    FROM pg_constraint f JOIN pg_class c ON c.oid = f.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE f.conrelid = %s AND f.contype = 'f' AND f.confrelid <> f.conrelid AND f.convalidated
      AND has_table_privilege(f.confrelid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
    ORDER BY f.conname
"""


@dataclass(frozen=True)
class StagedRows:
    """The batches that a writer hands over, and what else may be committed before or with them."""

    batches: Sequence[uuid.UUID]
    beside: tuple[uuid.UUID, uuid.UUID] | None
    """The first and the last id of the batches of all writers of the attempt; None if some will never be committed."""
    doubtful: Sequence[uuid.UUID]
    """Batches of this writer that will not be committed, whether they were written or not."""


@dataclass(frozen=True)
class _Check:
    """A query that finds a row that is in the way, and what it means."""

    statement: sql.Composed
    sqlstate: str
    before: str
    """Of the message, before the values of the key."""
    after: str = ""


class CommitChecks:
    """The checks that belong to a table; none where its user may not read it.

    Not seen are unique indexes on expressions or on a part of the rows, exclusion constraints, triggers, and what
    others write between the check and the commit.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        staging: tuple[str, ...],
        table: PostgresTable,
        columns: Sequence[str],
    ) -> None:
        self._table = table
        self._staging = staging
        self._in_table: list[_Check] = []
        self._in_batches: list[_Check] = []
        self._in_attempt: list[_Check] = []
        written = set(columns)
        row = connection.execute("SELECT has_table_privilege(%s::oid, 'SELECT')", (table.oid,)).fetchone()
        if row is not None and row[0]:
            for key in table.unique_keys:
                if written.issuperset(key):
                    self._add_unique(key)
        for name, schema, relation, own, other in connection.execute(_FOREIGN_KEYS, (table.oid,)).fetchall():
            if written.issuperset(own):
                self._add_foreign_key(name, (schema, relation), own, other)

    def run(self, connection: psycopg.Connection[Any], rows: StagedRows) -> None:
        """Raises the error that the commit of the rows would end with."""
        batches = list(rows.batches)
        with connection.transaction():
            # through the index of the table, however few or many rows the planner takes the staging table to have
            connection.execute("SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off")
            for check in self._in_table:
                self._check(connection, check, (batches,))
        for check in self._in_batches if rows.beside is None else self._in_attempt:
            values = (batches,) if rows.beside is None else (*rows.beside, list(rows.doubtful), batches)
            self._check(connection, check, values)

    def _check(self, connection: psycopg.Connection[Any], check: _Check, values: Sequence[Any]) -> None:
        found = connection.execute(check.statement, values).fetchone()
        if found is not None:
            table = self._table
            raise PostgresError(
                f"A record cannot be committed to {table.full_name}: {check.before} "
                f"({', '.join(map(str, found))}){check.after} ({table.server}).",
                server=table.server,
                table=table.full_name,
                sqlstate=check.sqlstate,
                hint=hint_for(check.sqlstate),
            )

    def _add_unique(self, key: tuple[str, ...]) -> None:
        from psycopg import sql

        parts = {
            "staging": identifier(*self._staging),
            "target": identifier(self._table.schema, self._table.name),
            "stage": identifier(STAGE),
            "key": identifiers(key),
            "shown": sql.SQL(", ").join(sql.SQL("{}::text").format(identifier(name)) for name in key),
            "not_null": sql.SQL(" AND ").join(sql.SQL("{} IS NOT NULL").format(identifier(name)) for name in key),
        }
        self._in_table.append(
            _Check(
                sql.SQL(
                    "SELECT {shown} FROM {staging} AS s JOIN {target} AS t USING ({key}) "
                    "WHERE s.{stage} = ANY(%s) LIMIT 1"
                ).format(**parts),
                _UNIQUE,
                f"there is a row with {_shown(key)} =",
                ", which is unique",
            )
        )
        twice = (f"there are two records with {_shown(key)} =", ", which is unique")
        self._in_batches.append(
            _Check(
                sql.SQL(
                    "SELECT {shown} FROM {staging} WHERE {stage} = ANY(%s) AND {not_null} "
                    "GROUP BY {key} HAVING count(*) > 1 LIMIT 1"
                ).format(**parts),
                _UNIQUE,
                *twice,
            )
        )
        self._in_attempt.append(
            _Check(
                sql.SQL(
                    "SELECT {shown} FROM {staging} WHERE {stage} BETWEEN %s AND %s AND {stage} <> ALL(%s) "
                    "AND {not_null} GROUP BY {key} HAVING count(*) > 1 AND bool_or({stage} = ANY(%s)) LIMIT 1"
                ).format(**parts),
                _UNIQUE,
                *twice,
            )
        )

    def _add_foreign_key(self, name: str, other: tuple[str, str], own: Sequence[str], referred: Sequence[str]) -> None:
        from psycopg import sql

        pairs = list(zip(map(identifier, own), map(identifier, referred), strict=True))
        statement = sql.SQL(
            "SELECT {own} FROM {staging} AS s WHERE s.{stage} = ANY(%s) AND {not_null} "
            "AND NOT EXISTS (SELECT FROM {other} AS r WHERE {equal}) LIMIT 1"
        ).format(
            own=sql.SQL(", ").join(sql.SQL("s.{}::text").format(column) for column, _ in pairs),
            staging=identifier(*self._staging),
            stage=identifier(STAGE),
            not_null=sql.SQL(" AND ").join(sql.SQL("s.{} IS NOT NULL").format(column) for column, _ in pairs),
            other=identifier(*other),
            equal=sql.SQL(" AND ").join(sql.SQL("r.{} = s.{}").format(theirs, ours) for ours, theirs in pairs),
        )
        self._in_table.append(
            _Check(
                statement,
                _FOREIGN_KEY,
                f"there is no row in {'.'.join(other)} for {_shown(own)} =",
                f", against the foreign key {name}",
            )
        )


def _shown(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"
