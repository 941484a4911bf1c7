"""Scans of Delta's tables: a version, or all that come, as appended rows or as changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from firesteel.connectors.delta.data_files import partition_value
from firesteel.connectors.delta.log import read_version
from firesteel.connectors.delta.table import DeltaTable
from firesteel.connectors.delta.types import row_type_of
from firesteel.connectors.lakes.columns import ColumnRows
from firesteel.connectors.lakes.conditions import Condition, arrow_filter
from firesteel.connectors.lakes.errors import LakeReadError, SchemaMismatchError
from firesteel.connectors.lakes.scan import Discovery, LakeScan, LakeSplit, as_columns
from firesteel.types.internal import arrow_type
from firesteel.types.logical import RowType

__all__ = ["DeltaScan", "ReadOptions"]

_KINDS = {"insert": 0, "update_preimage": 1, "update_postimage": 2, "delete": 3}
_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class ReadOptions:
    """Which versions are read."""

    interval_ms: int | None = None
    """None for a scan that ends."""
    version: int | None = None
    """The version that a scan reads which ends; else the latest."""
    timestamp: str | None = None
    starting_version: int | str | None = None
    """The first version whose changes a stream has, or ``latest``; None for all rows, and then changes."""
    starting_timestamp: str | None = None
    ignores_deletes: bool = False
    ignores_changes: bool = False
    reads_changes: bool = False
    """Whether rows have the kinds of the change data feed."""
    refuses_new_columns: bool = False


@dataclass(frozen=True)
class _Position:
    """The last version that was read."""

    version: int
    schema: str


@dataclass(frozen=True)
class DeltaScan(LakeScan):
    """Reads columns of a table."""

    table: DeltaTable
    row_type: RowType
    options: ReadOptions = ReadOptions()
    conditions: tuple[Condition, ...] = ()

    @property
    def interval_ms(self) -> int | None:  # type: ignore[override]
        return self.options.interval_ms

    @property
    def in_order(self) -> bool:  # type: ignore[override]
        return self.options.reads_changes

    def close(self) -> None:
        self.table.close()

    def is_remote(self) -> bool:
        return "://" in self.table.path and not self.table.path.startswith("file:")

    # -- finding files -----------------------------------------------------------------------------

    def discover(self, position: _Position | None) -> Discovery:
        self.table.refresh()
        current = self.table.loaded
        schema = current.schema().to_json()
        if position is None:
            return self._begin(schema)
        if self.options.refuses_new_columns and schema != position.schema:
            raise LakeReadError(
                f"The columns of {self.table.describe()} have changed: {row_type_of(schema)}.",
                hint="Start the job again, or set 'schema-evolution' = 'apply' to go on with the columns it had.",
            )
        self._check_columns(schema)
        return self._after(position.version, schema)

    def _begin(self, schema: str) -> Discovery:
        options, table = self.options, self.table.loaded
        if options.interval_ms is None and not (options.reads_changes and options.starting_version is not None):
            at: Any = options.version
            if options.timestamp is not None:
                at = _time(options.timestamp)
            table = self.table.at_version(at)
            schema = table.schema().to_json()
            self._check_columns(schema)
            return Discovery(self._snapshot(table), _Position(table.version(), schema))
        self._check_columns(schema)
        if options.starting_version == "latest":
            return Discovery([], _Position(table.version(), schema))
        if options.starting_timestamp is not None:
            return self._after(self._version_before(options.starting_timestamp), schema)
        if options.starting_version is not None:
            return self._after(int(options.starting_version) - 1, schema)
        return Discovery(self._snapshot(table), _Position(table.version(), schema))

    def _version_before(self, timestamp: str) -> int:
        """The last version that is older than a time."""
        at = _time(timestamp).timestamp() * 1000
        older = [one["version"] for one in self.table.loaded.history() if one["timestamp"] < at]
        return max(older, default=-1)

    def _check_columns(self, schema: str) -> None:
        there = row_type_of(schema).field_names
        missing = [name for name in self.row_type.field_names if name not in there]
        if missing:
            raise SchemaMismatchError(
                f"{self.table.describe()} has no column {', '.join(map(repr, missing))}.",
                columns=missing,
                hint=f"Its columns are: {', '.join(there)}.",
            )

    def _snapshot(self, table: Any) -> list[LakeSplit]:
        import pyarrow as pa

        self._check_features(table)
        found = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        splits = []
        for add in found:
            partition = {name: partition_value(value) for name, value in (add.get("partition") or {}).items()}
            splits.append(self._split(table.version(), unquote(add["path"]), partition))
        return sorted((split for split in splits if self._may_match(split)), key=lambda split: split.split_id)

    def _check_features(self, table: Any) -> None:
        mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mapping != "none":
            raise LakeReadError(f"{self.table.describe()} has a column mapping ({mapping}), which is not supported.")
        if (
            "deletionVectors" in (table.protocol().reader_features or ())
            and table.deletion_vectors().read_all().num_rows
        ):
            raise LakeReadError(
                f"{self.table.describe()} has deletion vectors, which are not supported.",
                hint="Run OPTIMIZE or REORG TABLE … APPLY (PURGE) on it, and disable delta.enableDeletionVectors.",
            )

    def _after(self, version: int, schema: str) -> Discovery:
        """The files of the versions that follow one."""
        splits: list[LakeSplit] = []
        last = self.table.loaded.version()
        for number in range(version + 1, last + 1):
            if self.options.reads_changes:
                splits.append(LakeSplit(f"{number}:changes", {"version": number}))
                continue
            actions = read_version(self.table.files, number)
            if actions is None:
                raise LakeReadError(
                    f"Version {number} of {self.table.describe()} is not in its log any more."
                    f" The table is at version {last}.",
                    hint="Start from a later version, and keep the log for longer (delta.logRetentionDuration).",
                )
            splits += self._appended(number, actions)
        return Discovery(splits, _Position(max(version, last), schema))

    def _appended(self, version: int, actions: Sequence[Mapping[str, Any]]) -> list[LakeSplit]:
        adds = [one["add"] for one in actions if "add" in one and one["add"].get("dataChange", True)]
        removes = [one["remove"] for one in actions if "remove" in one and one["remove"].get("dataChange", True)]
        options = self.options
        if removes and not options.ignores_changes and (adds or not options.ignores_deletes):
            option, done = ("ignoreChanges", "changed") if adds else ("ignoreDeletes", "deleted")
            raise LakeReadError(
                f"Version {version} of {self.table.describe()} has {done} rows, which a stream of "
                "appended rows cannot have.",
                hint=f"'{option}' = 'true' goes on, "
                + ("with rows that may have been there before" if adds else "without the deletion")
                + "; 'readChangeFeed' = 'true' reads changes, if the table records them.",
            )
        if any(add.get("deletionVector") for add in adds):
            raise LakeReadError(f"Version {version} of {self.table.describe()} has deletion vectors.")
        splits = [self._split(version, unquote(add["path"]), add.get("partitionValues") or {}) for add in adds]
        return [split for split in splits if self._may_match(split)]

    def _split(self, version: int, path: str, partition: Mapping[str, str | None]) -> LakeSplit:
        return LakeSplit(f"{version}:{path}", {"path": path, "partition": dict(partition)})

    def _may_match(self, split: LakeSplit) -> bool:
        """Whether the values of the partition allow for rows that meet the conditions."""
        import pyarrow as pa

        partition = split.file["partition"]
        conditions = [one for one in self.conditions if one.column in partition]
        if not conditions:
            return True
        types = {part.name: part.type for part in self.table.row_type().fields}
        row = pa.table({one.column: [_constant(partition, one.column, types)] for one in conditions})
        return bool(row.filter(arrow_filter(conditions)).num_rows)

    # -- reading -----------------------------------------------------------------------------------

    def read(self, split: LakeSplit) -> Iterator[ColumnRows]:
        if "version" in split.file:
            yield from self._changes(split.file["version"])
            return
        import pyarrow as pa
        import pyarrow.parquet

        types = {part.name: part.type for part in self.table.row_type().fields}
        partition = split.file["partition"]
        names = list(dict.fromkeys([*self.row_type.field_names, *(one.column for one in self.conditions)]))
        read_type = RowType.of(names, [self._type(name, types) for name in names])
        expression = arrow_filter(self.conditions)
        with self.table.files.open_input_file(split.file["path"]) as stream:
            file = pyarrow.parquet.ParquetFile(stream)
            there = set(file.schema_arrow.names)
            stored = [name for name in names if name in there and name not in partition]
            # rows are counted by a column, if none of the file's is read
            counted = stored or file.schema_arrow.names[:1]
            for batch in file.iter_batches(_BATCH_ROWS, columns=counted):
                data = pa.Table.from_batches([batch]).select(stored)
                for name in names:
                    if name in partition:
                        constant = _constant(partition, name, types)
                        data = data.append_column(name, pa.repeat(constant, batch.num_rows))
                data = as_columns(data, read_type)
                if expression is not None:
                    data = data.filter(expression)
                if data.num_rows:
                    yield ColumnRows(data.select(list(self.row_type.field_names)))

    def _type(self, name: str, types: Mapping[str, Any]) -> Any:
        own = self.row_type.field_names
        return self.row_type.fields[own.index(name)].type if name in own else types[name]

    def _changes(self, version: int) -> Iterator[ColumnRows]:
        import numpy as np
        import pyarrow as pa
        from deltalake.exceptions import DeltaError

        try:
            reader = self.table.loaded.load_cdf(starting_version=version, ending_version=version)
            batches = list(pa.RecordBatchReader.from_stream(reader))
        except DeltaError as error:
            raise LakeReadError(
                f"The changes of version {version} of {self.table.describe()} cannot be read: {error}.",
                hint="A table records them if it has the property delta.enableChangeDataFeed = true.",
            ) from error
        if not sum(batch.num_rows for batch in batches):
            return
        data = pa.Table.from_batches(batches)
        kinds = np.array([_KINDS[kind] for kind in data.column("_change_type").to_pylist()], np.int8)
        # files are in no order: what is taken away by a version comes before what it adds
        order = np.argsort(kinds % 2 == 0, kind="stable")
        yield ColumnRows(as_columns(data, self.row_type).take(pa.array(order)), kinds[order])


def _constant(partition: Mapping[str, str | None], name: str, types: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    wanted = arrow_type(types[name])
    text = partition[name]
    if text is None:
        return pa.scalar(None, wanted)
    if pa.types.is_binary(wanted):
        return pa.scalar(text.encode("latin-1"), wanted)
    return pa.array([text]).cast(wanted)[0]


def _time(text: str) -> dt.datetime:
    """A time of an option: without a zone it is of UTC."""
    found = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.timezone.utc)
