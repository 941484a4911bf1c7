"""Staging table of an exactly-once append: batches of rows that wait for their checkpoint."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.connection import describe_table
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.connectors.postgres.statements import STAGE, StagingStatements
from firesteel.connectors.postgres.table_description import PostgresTable, find_table

if TYPE_CHECKING:
    import psycopg

__all__ = ["BatchIds", "Stage", "ensure_staging_table", "sink_range", "staging_name"]

_MAX_NAME = 63
_SUFFIX = "_firesteel_staging"


@dataclass(frozen=True)
class Stage:
    """What a writer staged between two checkpoints, and where it goes: the batches' ids, and their rows in all."""

    staging: tuple[str, ...]
    target: tuple[str, ...]
    columns: tuple[str, ...]
    batches: tuple[uuid.UUID, ...]
    rows: int


class BatchIds:
    """Draws the ids of batches: five bytes for the sink, three for the attempt, eight at random.

    So the rows of a sink, and of an attempt of it, are a range of the index.
    """

    def __init__(self, sink_id: str, attempt_id: str) -> None:
        self._sink = _digest(sink_id, 5)
        self._prefix = self._sink + _digest(attempt_id, 3)

    def draw(self) -> uuid.UUID:
        """An id that no other batch has."""
        return uuid.UUID(bytes=self._prefix + uuid.uuid4().bytes[-8:])

    def all_of_sink(self) -> tuple[uuid.UUID, uuid.UUID]:
        """The first and the last id that this sink's batches can have."""
        return _range(self._sink)

    def all_of_attempt(self) -> tuple[uuid.UUID, uuid.UUID]:
        """The first and the last id that this attempt's batches can have."""
        return _range(self._prefix)


def sink_range(batch: uuid.UUID) -> tuple[uuid.UUID, uuid.UUID]:
    """The first and the last id that batches of the same sink can have."""
    return _range(batch.bytes[:5])


def staging_name(target: tuple[str, ...]) -> tuple[str, ...]:
    """The staging table that belongs to a target, in the same schema."""
    *schema, name = target
    if len(name) + len(_SUFFIX) > _MAX_NAME:
        name = f"{name[: _MAX_NAME - len(_SUFFIX) - 9]}_{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"
    return (*schema, name + _SUFFIX)


def ensure_staging_table(
    connection: psycopg.Connection[Any], staging: tuple[str, ...], table: PostgresTable, columns: tuple[str, ...]
) -> None:
    """Creates the staging table unless it is there with columns like the target's.

    One that is not, because the target was changed, is recreated if no rows are waiting in it.
    """
    statements = StagingStatements(staging, (table.schema, table.name), columns)
    shown = describe_table(staging)
    with connection.transaction():
        # one writer at a time looks and creates
        number = int.from_bytes(hashlib.blake2b(shown.encode(), digest_size=8).digest(), "big", signed=True)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (number,))
        found = find_table(connection, staging, table.server)
        if found is not None:
            difference = _difference(table, found, columns)
            if difference is None:
                found.check_privileges(connection, "INSERT", "SELECT", "DELETE")
                return
            row = connection.execute(statements.is_empty).fetchone()
            if row is None or not row[0]:
                raise PostgresError(
                    f"The staging table {shown} does not fit the table {table.full_name}: {difference} "
                    f"({table.server}).",
                    server=table.server,
                    table=shown,
                    hint="Rows of other jobs or of an earlier run wait in it. Wait until those jobs have completed a "
                    "checkpoint or ended, or set another staging table with set_staging_table().",
                )
            connection.execute(statements.drop)
        connection.execute(statements.create)


def _difference(table: PostgresTable, staging: PostgresTable, columns: tuple[str, ...]) -> str | None:
    there = {column.name: column for column in staging.columns}
    if STAGE not in there:
        return f"it has no column {STAGE}"
    for column in table.select(columns):
        other = there.get(column.name)
        if other is None:
            return f"it has no column {column.name}"
        if other.type_name != column.type_name:
            return f"the column {column.name} is {other.type_name} in it, but {column.type_name} in the table"
    for column in staging.columns:
        # of a column that was dropped: it would never be filled
        if column.not_null and column.name != STAGE and column.name not in {each.name for each in table.columns}:
            return f"the table has no column {column.name}"
    return None


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=size).digest()


def _range(prefix: bytes) -> tuple[uuid.UUID, uuid.UUID]:
    rest = 16 - len(prefix)
    return uuid.UUID(bytes=prefix + b"\x00" * rest), uuid.UUID(bytes=prefix + b"\xff" * rest)
