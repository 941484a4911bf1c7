"""Exactly-once writer of an append, over a staging table."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.sink.commit_checks import CommitChecks, StagedRows
from firesteel.connectors.postgres.sink.row_conversion import CopyFormat
from firesteel.connectors.postgres.sink.settings import SinkSettings
from firesteel.connectors.postgres.sink.staging import BatchIds, Stage, ensure_staging_table, staging_name
from firesteel.connectors.postgres.sink.writer import AppendWriter
from firesteel.connectors.postgres.statements import StagingStatements
from firesteel.connectors.postgres.table_description import need_table
from firesteel.spi.sink import WriterContext

if TYPE_CHECKING:
    import psycopg

__all__ = ["StagingWriter"]


class StagingWriter(AppendWriter):
    """Stages one subtask's rows beside the table; the committer moves them into it.

    1. *Staged*: records are copied, a batch in a transaction, into the staging table. Each row carries its batch's id.
       Only the sink reads that table.
    2. A batch whose connection is lost is written again under a new id. It does not matter whether the first one went
       through, or still does: an id that is not handed over at 3 means nothing.
    3. At a checkpoint the last batch is written, and ``prepare_commit`` hands over the ids of the batches since the one
       before, and how many rows they have. All of them are durable in the database. What could fail at 4 is tried
       now, so that it fails the task and not all that come after: the statement itself is planned, and rows are looked
       for that a unique index or a foreign key would refuse.
    4. *Committed*: once the checkpoint is complete, one statement deletes the rows of these ids from the staging table
       and inserts them into the target. That the rows are gone is the mark that they have been committed: both happen
       in one transaction, or neither does.

    After a failure:

    5. What the checkpoint has handed over is committed again, by the subtask that got it. If its rows are gone, that
       happened before. Of two who commit the same rows at the same moment the second waits for the first, then finds
       nothing. Should only a part of the rows be there, someone else has changed the table: that is an error.
    6. All other rows of earlier attempts belong to no checkpoint. The records come again, under new ids. The rows are
       deleted when that is certain for those of all subtasks: with the first checkpoint of this attempt that completes.

    So a reader of the table sees every record of completed checkpoints once, and no others. An id has the sink and the
    attempt in it: jobs, sinks and attempts that stage in the same table never touch each other's rows. The target's own
    types, NOT NULL and CHECK constraints hold in the staging table too, so a record that violates them fails the task
    that writes it. Seen at 4 only are unique indexes on expressions or a part of the rows, exclusion constraints,
    triggers, and what others write to the table between 3 and 4.
    """

    def __init__(self, context: WriterContext, settings: SinkSettings, *, restored: bool) -> None:
        self._ids = BatchIds(context.sink_id, context.attempt_id)
        self._staging = settings.staging or staging_name(settings.table)
        self._batches: list[uuid.UUID] = []
        self._row_count = 0
        self._doubtful: list[uuid.UUID] = []
        self._first_snapshot: int | None = None
        self._commits_in_driver = context.execution.commits_in_driver
        # one subtask does it for all
        self._has_to_clean = (restored or context.attempt_number > 0) and context.subtask_index == 0
        super().__init__(context, settings)

    def open(self, connection: psycopg.Connection[Any]) -> None:
        """Checks the table and creates the staging table."""
        super().open(connection)
        table = need_table(connection, self.settings.table, self.session.server)
        ensure_staging_table(connection, self._staging, table, self.columns)
        columns = table.select(self.columns)
        self.format = CopyFormat(columns, extra=("uuid",))
        self._statements = StagingStatements(self._staging, self.settings.table, self.columns)
        self._checks = CommitChecks(connection, self._staging, table, self.columns)
        self._try_commit(connection)

    def write_rows(self, rows: list[Any]) -> None:
        """Stages a batch (1, 2)."""
        tried: list[uuid.UUID] = []

        def stage(connection: psycopg.Connection[Any]) -> None:
            batch = self._ids.draw()
            tried.append(batch)
            self.format.write(connection, self._statements.target, [(batch, *row) for row in rows])

        self.session.run(stage, f"Records cannot be staged for {self.table_name}", table=self.table_name)
        *doubtful, batch = tried
        self._doubtful += doubtful
        self._batches.append(batch)
        self._row_count += len(rows)

    def prepare_commit(self) -> list[Stage]:
        """Hands over the batches since the last time (3)."""
        if not self._batches:
            return []
        self.session.run(
            self._try_commit, f"Staged records could not be committed to {self.table_name}", table=self.table_name
        )
        stage = Stage(self._staging, self.settings.table, self.columns, tuple(self._batches), self._row_count)
        self._batches, self._row_count = [], 0
        return [stage]

    def _try_commit(self, connection: psycopg.Connection[Any]) -> None:
        """Finds what would fail at 4 (3)."""
        connection.execute(self._statements.try_move, (self._batches,))
        if self._batches:
            # a task that is run again leaves batches behind that belong to nothing
            beside = None if self._commits_in_driver else self._ids.all_of_attempt()
            self._checks.run(connection, StagedRows(self._batches, beside, self._doubtful))

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any] | None:
        """Nothing: what is staged is handed over."""
        if self._first_snapshot is None:
            self._first_snapshot = checkpoint_id
        return None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Deletes what belongs to no checkpoint (6)."""
        if self._first_snapshot is None or checkpoint_id < self._first_snapshot:
            return
        doubtful, self._doubtful = self._doubtful, []
        has_to_clean, self._has_to_clean = self._has_to_clean, False
        if not doubtful and not has_to_clean:
            return

        def clean(connection: psycopg.Connection[Any]) -> None:
            if doubtful:
                connection.execute(self._statements.forget, (doubtful,))
            if has_to_clean:
                connection.execute(
                    self._statements.forget_others, (*self._ids.all_of_sink(), *self._ids.all_of_attempt())
                )

        self.session.run(clean, f"What earlier attempts staged for {self.table_name} cannot be deleted")
