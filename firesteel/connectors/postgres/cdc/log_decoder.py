"""Log decoder: converts log messages to change records, without those that the snapshot has already read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from firesteel.connectors.postgres.cdc.capture_check import table_renamed, table_replaced
from firesteel.connectors.postgres.cdc.captured_table import CapturedTable, KeyOrder
from firesteel.connectors.postgres.cdc.change_record import ChangelogMode, ChangeRecord
from firesteel.connectors.postgres.cdc.errors import (
    SchemaChangedError,
    TruncatedTableError,
    UnavailableValueError,
    UnreadableValueError,
)
from firesteel.connectors.postgres.cdc.options import NO_PLACEHOLDER, CdcOptions
from firesteel.connectors.postgres.cdc.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Frame,
    Insert,
    Keepalive,
    Relation,
    Truncate,
    Tuple,
    Update,
    decode_message,
)
from firesteel.connectors.postgres.cdc.split import ChunkPart, LogPosition, LogSplit

__all__ = ["LogDecoder", "ReadRows"]


class ReadRows:
    """Which rows of a table were read in which transaction, before the log."""

    def __init__(self, table: CapturedTable, parts: Sequence[ChunkPart]) -> None:
        self._table = table
        # a part without upper bound is the last one
        bounded = [(table.sort_key(part.high), part) for part in parts if part.high is not None]
        bounded.sort(key=lambda pair: pair[0])
        self._highs = [high for high, _ in bounded]
        self._parts = [part for _, part in bounded] + [part for part in parts if part.high is None]
        self._snapshots = {part.snapshot for part in parts}

    def visibility(self, xid: int) -> bool | list[bool]:
        """Whether a transaction was seen by all reads, by none, or for each read on its own."""
        seen = {snapshot: snapshot.sees(xid) for snapshot in self._snapshots}
        if len(set(seen.values())) == 1:
            return next(iter(seen.values()))
        return [seen[part.snapshot] for part in self._parts]

    def find(self, key: Sequence[Any]) -> int:
        """Which read was that of the key."""
        return bisect_left(self._highs, self._table.sort_key(tuple(key)))


class _Relation:
    """How rows of a table are to be read at this place in the log.

    ``error`` is raised with the first change that is emitted: a capture may begin with a slot that has changes from
    before the table was altered, which are left out since the rows that were read show them.
    """

    def __init__(self, relation: Relation, table: CapturedTable, options: CdcOptions) -> None:
        from psycopg import pq
        from psycopg.adapt import Transformer

        self.table = table
        self.columns = table.column_names
        """Of the records."""
        names = tuple(column.name for column in relation.columns)
        # the catalog has the base type of a domain, the log does not
        known = {(column.name, column.declared_oid): column.type_oid for column in table.columns}
        types = [known.get((column.name, column.type_oid), column.type_oid) for column in relation.columns]
        altered = [c.name for c in relation.columns if c.name in self.columns and (c.name, c.type_oid) not in known]
        behavior = options.schema_change_behavior
        self.error = self._find_error(relation, altered, behavior)
        self._transformer = Transformer(None)
        self._transformer.set_loader_types(types, pq.Format.TEXT)
        self._types = types
        self._projection: list[int | None] | None = None
        if names != self.columns:
            if behavior == "evolve":
                self.columns = names
            else:
                self._projection = [names.index(name) if name in names else None for name in self.columns]
        self._key = [
            (names.index(column.name), column.order == KeyOrder.AS_TEXT) for column in table.key if column.name in names
        ]
        self._key_error: SchemaChangedError | None = None
        """Why a key cannot be compared with the bounds of what was read."""
        is_other = table.oid not in (0, relation.relation_id)
        if is_other or len(self._key) < len(table.key) or any(column.name in altered for column in table.key):
            self._key_error = self.error or _schema_changed(table, names, altered)
        if len(self._key) < len(table.key):
            self.error = self._key_error
        self._names = names

    def _find_error(self, relation: Relation, altered: Sequence[str], behavior: str) -> SchemaChangedError | None:
        table, names = self.table, tuple(column.name for column in relation.columns)
        if table.oid and relation.relation_id != table.oid:
            return table_replaced(table)
        if behavior != "exception":
            return None
        if (relation.schema, relation.name) != (table.schema, table.name):
            return table_renamed(table, f"{relation.schema}.{relation.name}")
        return _schema_changed(table, names, altered) if altered or names != table.column_names else None

    def values(self, row: Tuple, options: CdcOptions) -> Sequence[Any]:
        """The values of the records' columns."""
        if self.error is not None:
            raise self.error
        unavailable = [index for index, value in enumerate(row) if value is UNCHANGED]
        if unavailable:
            if options.unavailable_value == NO_PLACEHOLDER:
                raise self._unavailable(unavailable[0])
            row = [None if value is UNCHANGED else value for value in row]
        loaded: Sequence[Any] = self._load(row)
        if unavailable:
            loaded = list(loaded)
            for index in unavailable:
                loaded[index] = options.unavailable_value
        if self._projection is not None:
            return [None if index is None else loaded[index] for index in self._projection]
        return loaded

    def key(self, row: Tuple) -> tuple[Any, ...]:
        """The values of the primary key."""
        if self._key_error is not None:
            raise self._key_error
        load = self._transformer.get_loader
        from psycopg import pq

        return tuple(
            [
                None
                if row[index] is None
                else bytes(row[index]).decode()  # type: ignore[arg-type]
                if as_text
                else load(self._types[index], pq.Format.TEXT).load(row[index])  # type: ignore[arg-type]
                for index, as_text in self._key
            ]
        )

    def raw_key(self, row: Tuple) -> list[Any]:
        """The primary key as the server writes it."""
        return [row[index] for index, _ in self._key]

    def _load(self, row: Tuple) -> Sequence[Any]:
        import psycopg

        try:
            return self._transformer.load_sequence(row)  # type: ignore[arg-type]
        except (psycopg.DataError, ValueError) as error:
            raise UnreadableValueError(
                f"A change of table {self.table.table_id} has a value that cannot be read: {error}",
                table=self.table.table_id,
                hint="Python has nothing for it, such as dates after the year 9999 or infinity.",
            ) from error

    def _unavailable(self, index: int) -> UnavailableValueError:
        table = self.table.table_id
        return UnavailableValueError(
            f"Column '{self._names[index]}' of table {table} has a large value that an update did not change: the "
            "server does not send it.",
            table=table,
            hint=f"ALTER TABLE {table} REPLICA IDENTITY FULL, or set a placeholder: unavailable_value_placeholder(…).",
        )


class LogDecoder:
    """Goes through the frames of one replication stream from a position on.

    A change is left out if the rows that were read from the table show it: then its transaction is visible in the
    snapshot in which the row with this key was read. A row whose key changes may be so in one place and not in the
    other, then it is emitted as a deleted or as a new row. From the transactions on that no snapshot can have seen, the
    snapshots are forgotten.
    """

    def __init__(self, split: LogSplit, options: CdcOptions) -> None:
        self._lsn = split.position.lsn
        self._commit_lsn = split.position.commit_lsn
        self._done = split.position.changes
        self._options = options
        self._needs_before = options.changelog_mode == ChangelogMode.ALL
        self._by_name = {(table.schema, table.name): table for table in split.tables}
        self._by_id = {table.oid: table for table in split.tables if table.oid}
        self._all_tables = split.tables
        self.set_parts(split.parts)
        self._relations: dict[int, _Relation | None] = {}
        self._visibility: dict[str, bool | list[bool]] = {}
        self._skip = 0
        """How many changes of the transaction have been emitted before."""
        self._begin: Begin | None = None

    @property
    def position(self) -> LogPosition:
        """Behind the last change that was decoded."""
        return LogPosition(self._lsn, self._commit_lsn, self._done)

    def set_parts(self, parts: dict[str, tuple[ChunkPart, ...]]) -> None:
        """Restores what was read from the tables."""
        self.parts = parts
        by_id = {table.table_id: table for table in self._all_tables}
        self._read = {table_id: ReadRows(by_id[table_id], read) for table_id, read in parts.items()}
        self._forget_after = max((part.snapshot.lsn for read in parts.values() for part in read), default=0)

    def decode(self, frame: Frame, out: list[ChangeRecord]) -> None:
        """Appends the changes of a frame, and moves the position."""
        if isinstance(frame, Keepalive):
            if self._begin is None and self._commit_lsn == 0 and frame.lsn > self._lsn:
                self._lsn = frame.lsn
            return
        message = decode_message(frame.payload)
        if message is None:
            return
        if isinstance(message, Begin):
            self._on_begin(message)
        elif isinstance(message, Commit):
            self._begin = None
            self._lsn, self._commit_lsn, self._done = message.end_lsn, 0, 0
        elif isinstance(message, Relation):
            # by its id it is the captured one under any name; one with its name and another id has replaced it
            table = self._by_id.get(message.relation_id) or self._by_name.get((message.schema, message.name))
            self._relations[message.relation_id] = None if table is None else _Relation(message, table, self._options)
        else:
            self._on_change(message, out)

    def _on_begin(self, begin: Begin) -> None:
        self._begin = begin
        self._skip = self._done if self._commit_lsn == begin.commit_lsn else 0
        self._commit_lsn = begin.commit_lsn
        self._done = self._skip
        self._visibility = {}
        if self.parts:
            if begin.commit_lsn > self._forget_after:
                self.set_parts({})
            else:
                self._visibility = {table: read.visibility(begin.xid) for table, read in self._read.items()}

    def _on_change(self, message: Insert | Update | Delete | Truncate, out: list[ChangeRecord]) -> None:
        if self._skip > 0:
            self._skip -= 1
            return
        if isinstance(message, Truncate):
            self._on_truncate(message)
        else:
            relation = self._relations[message.relation_id]
            if relation is not None:
                self._emit(relation, message, out)
        self._done += 1

    def _on_truncate(self, message: Truncate) -> None:
        relations = [self._relations.get(relation_id) for relation_id in message.relation_ids]
        tables = [
            relation.table.table_id
            for relation in relations
            if relation is not None and self._visibility.get(relation.table.table_id) is not True
        ]
        if tables and self._options.truncate_behavior == "exception":
            raise TruncatedTableError(
                f"Table {', '.join(tables)} was truncated: there are no row changes to emit.",
                table=tables[0],
                hint="Set truncate_behavior('ignore') to read on without, or start the job without a checkpoint.",
            )

    def _emit(self, relation: _Relation, message: Insert | Update | Delete, out: list[ChangeRecord]) -> None:
        visibility = self._visibility.get(relation.table.table_id, False)
        if visibility is True:
            return
        options = self._options
        if isinstance(message, Insert):
            if self._is_new(relation, visibility, message.new):
                out.append(self._record(relation, "c", None, relation.values(message.new, options)))
            return
        if self._needs_before and not message.is_full:
            raise _identity_lost(relation.table)
        if isinstance(message, Delete):
            if self._is_new(relation, visibility, message.old):
                out.append(self._record(relation, "d", relation.values(message.old, options), None))
            return
        old, new = message.old, message.new
        if old is not None and message.is_full and UNCHANGED in new:
            new = [before if value is UNCHANGED else value for before, value in zip(old, new, strict=True)]
        if old is None or not relation.table.key or relation.raw_key(old) == relation.raw_key(new):
            if self._is_new(relation, visibility, new):
                before = relation.values(old, options) if old is not None and self._needs_before else None
                out.append(self._record(relation, "u", before, relation.values(new, options)))
            return
        # another key, another row
        if self._is_new(relation, visibility, old):
            out.append(self._record(relation, "d", relation.values(old, options), None))
        if self._is_new(relation, visibility, new):
            out.append(self._record(relation, "c", None, relation.values(new, options)))

    def _is_new(self, relation: _Relation, visibility: bool | list[bool], row: Tuple) -> bool:
        if isinstance(visibility, bool):
            return not visibility
        return not visibility[self._read[relation.table.table_id].find(relation.key(row))]

    def _record(
        self, relation: _Relation, op: str, before: Sequence[Any] | None, after: Sequence[Any] | None
    ) -> ChangeRecord:
        begin, table = self._begin, relation.table
        assert begin is not None
        return ChangeRecord(
            table.database,
            table.schema,
            table.name,
            relation.columns,
            op,
            before,
            after,
            begin.timestamp_ms,
            begin.commit_lsn,
            begin.xid,
        )


def _schema_changed(table: CapturedTable, names: tuple[str, ...], altered: Sequence[str] = ()) -> SchemaChangedError:
    added = [name for name in names if name not in table.column_names]
    missing = [name for name in table.column_names if name not in names]
    differences = (("also", added), ("not", missing), ("another type of", altered))
    what = [f"{verb} {', '.join(columns)}" for verb, columns in differences if columns]
    return SchemaChangedError(
        f"A change of table {table.table_id} was made when it had other columns than when the capture began: "
        f"{'; '.join(what) or 'in another order'}.",
        table=table.table_id,
        hint="Set schema_change_behavior('evolve') to use the new columns, or 'ignore' to keep the original columns, "
        "and restart from the last checkpoint. The primary key must not change.",
    )


def _identity_lost(table: CapturedTable) -> SchemaChangedError:
    return SchemaChangedError(
        f"Table {table.table_id} no longer has REPLICA IDENTITY FULL: the log does not contain the row before a "
        "change.",
        table=table.table_id,
        hint=f"ALTER TABLE {table.table_id} REPLICA IDENTITY FULL; changes made without it can only be read with "
        "changelog_mode('upsert').",
    )
