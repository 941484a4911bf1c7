"""UPDATE, DELETE and TRUNCATE of tables of PostgreSQL, each in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect, split_name, translating
from firesteel.table.connector.row_changes import RowChanges

__all__ = ["PostgresRowChanges"]


@dataclass(frozen=True)
class PostgresRowChanges(RowChanges):
    """Changes rows of a table."""

    connection: PostgresConnectionOptions
    table: str
    columns_of_key: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.columns_of_key

    def delete(self, keys: Sequence[tuple[Any, ...]]) -> int:
        from psycopg import sql

        statement = sql.SQL("DELETE FROM {} WHERE {}").format(self._name(), self._condition())
        return self._run(statement, keys)

    def update(self, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> int:
        from psycopg import sql

        setting = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns)
        statement = sql.SQL("UPDATE {} SET {} WHERE {}").format(self._name(), setting, self._condition())
        return self._run(statement, rows)

    def truncate(self) -> None:
        """Deletes all rows."""
        from psycopg import sql

        self._run(sql.SQL("TRUNCATE TABLE {}").format(self._name()), [()])

    def _name(self) -> Any:
        from psycopg import sql

        return sql.Identifier(*split_name(self.table))

    def _condition(self) -> Any:
        from psycopg import sql

        return sql.SQL(" AND ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in self.key)

    def _run(self, statement: Any, arguments: Sequence[tuple[Any, ...]]) -> int:
        if not arguments:
            return 0
        with (
            connect(self.connection, name="firesteel changes", autocommit=False) as connection,
            translating(f"The table {self.table} cannot be changed", self.connection.describe(), table=self.table),
            connection.cursor() as cursor,
        ):
            cursor.executemany(statement, arguments)
            return int(cursor.rowcount)
