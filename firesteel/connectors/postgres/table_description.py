"""Table description from the catalog, and the check that a sink can write to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.errors import PostgresError

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresColumn", "PostgresTable", "find_table", "need_table"]

_COLUMNS = """
    SELECT a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod), a.attnotnull,
           a.attgenerated = '' AND a.attidentity <> 'a'
    FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_TYPES = """
    SELECT oid, typtype = 'd', typbasetype, CASE WHEN typcategory = 'A' THEN typelem ELSE 0 END, format_type(oid, NULL)
    FROM pg_type WHERE oid = ANY(%s::oid[])
"""

# not those on expressions or on a part of the rows, and not those that are checked only at the end of a transaction
_UNIQUE = """
    SELECT i.indisprimary, array_agg(a.attname ORDER BY k.n)
    FROM pg_index i, unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS k(attnum, n), pg_attribute a
    WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL AND a.attrelid = i.indrelid AND a.attnum = k.attnum
    GROUP BY i.indexrelid, i.indisprimary ORDER BY i.indisprimary DESC, i.indexrelid
"""


@dataclass(frozen=True)
class PostgresColumn:
    """A column of a table; ``is_insertable`` unless its value is always generated."""

    name: str
    oid: int
    """The type that values are sent as: that below a domain; 0 for an array of a domain, which has none."""
    type_name: str
    not_null: bool
    is_insertable: bool
    base_type: str
    """The name of the type below domains, without length or precision."""


@dataclass(frozen=True)
class PostgresTable:
    """A table as the server describes it; ``unique_keys`` has the primary key first, if there is one."""

    server: str
    schema: str
    name: str
    oid: int
    columns: tuple[PostgresColumn, ...]
    unique_keys: tuple[tuple[str, ...], ...]
    primary_key: tuple[str, ...] | None

    @property
    def full_name(self) -> str:
        """With its schema, for messages."""
        return f"{self.schema}.{self.name}"

    def select(self, names: Sequence[str] | None) -> tuple[PostgresColumn, ...]:
        """The columns of those names; without names, all that can be written."""
        if names is None:
            return tuple(column for column in self.columns if column.is_insertable)
        by_name = {column.name: column for column in self.columns}
        if missing := [name for name in names if name not in by_name]:
            raise PostgresError(
                f"The table {self.full_name} has no column {', '.join(map(repr, missing))} ({self.server}).",
                server=self.server,
                table=self.full_name,
                sqlstate="42703",
                hint=f"Its columns are: {', '.join(by_name)}.",
            )
        if generated := [name for name in names if not by_name[name].is_insertable]:
            raise PostgresError(
                f"The value of the column {generated[0]!r} of {self.full_name} is always generated ({self.server}).",
                server=self.server,
                table=self.full_name,
                sqlstate="428C9",
                hint="Leave it out of set_columns().",
            )
        return tuple(by_name[name] for name in names)

    def key(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """The key columns of an upsert: those given, if they are unique, or the primary key."""
        if names is None and self.primary_key is not None:
            return self.primary_key
        if names is not None:
            self.select(names)
            for key in self.unique_keys:
                if sorted(key) == sorted(names):
                    return key
            raise self._no_key(f"({', '.join(names)}) is neither primary key nor unique index of {self.full_name}")
        raise self._no_key(f"The table {self.full_name} has no primary key")

    def missing_key(self, names: Sequence[str]) -> PostgresError:
        """The error for an upsert that does not write its key."""
        return PostgresError(
            f"The key of {self.full_name} is not wholly among the columns written: {', '.join(map(repr, names))} "
            f"({self.server}).",
            server=self.server,
            table=self.full_name,
            sqlstate="42P10",
            hint="Name it in set_columns(); a key that the table generates is not available in the stream.",
        )

    def check_privileges(self, connection: psycopg.Connection[Any], *privileges: str) -> None:
        """Whether the user may do that with the table."""
        for privilege in privileges:
            row = connection.execute(
                "SELECT has_table_privilege(%(oid)s::oid, %(what)s) OR has_any_column_privilege(%(oid)s::oid, %(what)s)"
                if privilege != "DELETE"
                else "SELECT has_table_privilege(%(oid)s::oid, %(what)s)",
                {"oid": self.oid, "what": privilege},
            ).fetchone()
            if row is not None and not row[0]:
                user = connection.info.user
                raise PostgresError(
                    f"The user '{user}' has no {privilege} permission on {self.full_name} ({self.server}).",
                    server=self.server,
                    table=self.full_name,
                    sqlstate="42501",
                    hint=f'GRANT {", ".join(privileges)} ON {self.full_name} TO "{user}";',
                )

    def _no_key(self, message: str) -> PostgresError:
        return PostgresError(
            f"{message}, so records of the same key cannot replace each other ({self.server}).",
            server=self.server,
            table=self.full_name,
            sqlstate="42P10",
            hint="Add a primary key or a unique index, not a partial one, to the table, or append to it instead.",
        )


def find_table(connection: psycopg.Connection[Any], name: tuple[str, ...], server: str) -> PostgresTable | None:
    """The table of that name, in the search path if it has no schema; None if there is none."""
    from psycopg import sql

    found = connection.execute(
        "SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.oid = to_regclass(%s)",
        (sql.Identifier(*name).as_string(connection),),
    ).fetchone()
    if found is None:
        return None
    oid, schema, relation = found
    columns = _describe_columns(connection, oid)
    keys = [(primary, tuple(names)) for primary, names in connection.execute(_UNIQUE, (oid,))]
    primary_key = next((names for primary, names in keys if primary), None)
    return PostgresTable(server, schema, relation, oid, columns, tuple(names for _, names in keys), primary_key)


def _describe_columns(connection: psycopg.Connection[Any], table: int) -> tuple[PostgresColumn, ...]:
    rows = connection.execute(_COLUMNS, (table,)).fetchall()
    types: dict[int, Any] = {}
    missing = {row[1] for row in rows}
    while missing:
        found = connection.execute(_TYPES, (list(missing),)).fetchall()
        types.update((row[0], row[1:]) for row in found)
        below = {oid for row in found for oid in ((row[2],) if row[1] else (row[3],)) if oid}
        missing = below - types.keys()
    columns = []
    for name, oid, type_name, not_null, is_insertable in rows:
        base = _below_domains(oid, types)
        _, _, element, base_type = types[base]
        if element and (below_element := _below_domains(element, types)) != element:
            base, base_type = 0, f"{types[below_element][3]}[]"
        columns.append(PostgresColumn(name, base, type_name, not_null, is_insertable, base_type))
    return tuple(columns)


def _below_domains(oid: int, types: dict[int, Any]) -> int:
    while types[oid][0]:
        oid = types[oid][1]
    return oid


def need_table(connection: psycopg.Connection[Any], name: tuple[str, ...], server: str) -> PostgresTable:
    """The table of that name; raises an error if there is none."""
    table = find_table(connection, name, server)
    if table is None:
        shown = ".".join(name)
        raise PostgresError(
            f"There is no table {shown} ({server}).",
            server=server,
            table=shown,
            sqlstate="42P01",
            hint="Create it first, or correct its name; a name without schema is looked for in the search path.",
        )
    return table
