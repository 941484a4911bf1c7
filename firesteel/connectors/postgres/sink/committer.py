"""Exactly-once committer of an append."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.connection import describe_table
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.connectors.postgres.session import Session
from firesteel.connectors.postgres.sink.settings import SinkSettings
from firesteel.connectors.postgres.sink.staging import Stage, sink_range
from firesteel.connectors.postgres.statements import StagingStatements
from firesteel.spi.sink import Committer

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresCommitter"]


class PostgresCommitter(Committer[Stage]):
    """Moves staged rows into the target; see :class:`StagingWriter` for the protocol."""

    def __init__(self, settings: SinkSettings) -> None:
        self._session = Session(settings.connection, "firesteel committer", max_retries=settings.max_retries)
        self._sinks: dict[tuple[uuid.UUID, uuid.UUID], Stage] = {}

    def commit(self, committables: Sequence[Stage]) -> None:
        """Commits stages of this attempt; one whose rows are gone is an error."""
        for stage in committables:
            self._commit(stage, may_be_gone=False)

    def recommit(self, committables: Sequence[Stage]) -> None:
        """Commits stages that may have been committed before."""
        for stage in committables:
            self._commit(stage, may_be_gone=True)

    def finish(self) -> None:
        """Deletes what tasks that failed, and those that were run again, have staged."""
        for ids, stage in self._sinks.items():
            statement = StagingStatements(stage.staging, stage.target, stage.columns).forget_range
            forget = partial(_execute, statement, ids)
            self._session.run(forget, f"The rows left in {describe_table(stage.staging)} cannot be deleted")

    def close(self) -> None:
        """Closes the connection."""
        self._session.close()

    def _commit(self, stage: Stage, *, may_be_gone: bool) -> None:
        self._sinks[sink_range(stage.batches[0])] = stage
        statement = StagingStatements(stage.staging, stage.target, stage.columns).move
        tries = 0

        def move(connection: psycopg.Connection[Any]) -> None:
            nonlocal tries
            tries += 1
            with connection.transaction():
                row = connection.execute(statement, (list(stage.batches),)).fetchone()
                moved = 0 if row is None else row[0]
                # when the connection was lost during a commit, that may have gone through
                if moved != stage.rows and not (moved == 0 and (may_be_gone or tries > 1)):
                    raise self._wrong_count(stage, moved)

        target = describe_table(stage.target)
        self._session.run(move, f"Staged records cannot be committed to {target}", table=target)

    def _wrong_count(self, stage: Stage, moved: int) -> PostgresError:
        staging = describe_table(stage.staging)
        return PostgresError(
            f"{stage.rows} rows were staged for {describe_table(stage.target)}, but {moved} are in {staging} "
            f"({self._session.server}).",
            server=self._session.server,
            table=staging,
            hint="The staging table must not be changed as long as a job can be restored, and the server must not "
            "lose committed data: after a failover, restore an earlier checkpoint.",
        )


def _execute(statement: Any, values: Sequence[Any], connection: psycopg.Connection[Any]) -> None:
    connection.execute(statement, values)
