"""A table of Delta Lake: its columns, files and commits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from firesteel.connectors.delta.data_files import partition_path, split_by_partition, statistics
from firesteel.connectors.delta.log import paths_in_log
from firesteel.connectors.delta.types import row_type_of, to_delta_schema
from firesteel.connectors.lakes.columns import to_schema
from firesteel.connectors.lakes.committable import LakeCommittable
from firesteel.connectors.lakes.errors import (
    LakeConflictError,
    LakeError,
    LakeTableNotFoundError,
    require_library,
)
from firesteel.connectors.lakes.parquet_output import ParquetOutput
from firesteel.connectors.lakes.table import LakeTable, OutputFile
from firesteel.types.logical import RowType

__all__ = ["DeltaTable"]

_TARGET_SIZE = "delta.targetFileSize"
_DEFAULT_TARGET_SIZE = 128 * 1024 * 1024
_CHANGES = "_firesteel_changes"
_DELETED = "_is_deleted"
_LIVE = ("loaded", "files")


class DeltaTable(LakeTable):
    """A table by its path and the options of its store; connects when it is needed."""

    format_name = "Delta"

    def __init__(
        self, path: str, storage_options: Mapping[str, str] | None = None, target_size: int | None = None
    ) -> None:
        self.path = path.rstrip("/")
        self.storage_options = tuple(sorted((storage_options or {}).items()))
        self.target_size = target_size

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in _LIVE}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeltaTable) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((self.path, self.storage_options))

    def __repr__(self) -> str:
        return f"DeltaTable({self.path})"

    def exists(self) -> bool:
        """Whether there is a table at the path."""
        library = require_library("deltalake", "delta", "Delta Lake")
        return bool(library.DeltaTable.is_deltatable(self.path, dict(self.storage_options)))

    def create(self, row_type: RowType, partition_keys: Sequence[str], properties: Mapping[str, str]) -> None:
        """Creates the table, unless there is one."""
        library = require_library("deltalake", "delta", "Delta Lake")
        library.DeltaTable.create(
            self.path,
            to_delta_schema(row_type),
            mode="ignore",
            partition_by=list(partition_keys),
            configuration=dict(properties) or None,
            storage_options=dict(self.storage_options),
        )

    def at_version(self, version: Any = None) -> Any:
        """The table of deltalake, at a version or a time."""
        library = require_library("deltalake", "delta", "Delta Lake")
        errors = require_library("deltalake.exceptions", "delta", "Delta Lake")
        try:
            found = library.DeltaTable(self.path, storage_options=dict(self.storage_options))
            if version is not None:
                found.load_as_version(version)
        except errors.TableNotFoundError as error:
            raise LakeTableNotFoundError(
                f"There is no Delta table at '{self.path}'.",
                hint="Check 'table-path'; a sink of SQL creates the table.",
            ) from error
        except errors.DeltaError as error:
            raise LakeError(f"{self.describe()} has no version {version}: {error}.") from error
        return found

    @cached_property
    def loaded(self) -> Any:
        return self.at_version()

    @cached_property
    def files(self) -> Any:
        """The files beneath the path, as a file system of pyarrow."""
        import pyarrow.fs
        from deltalake.fs import DeltaStorageHandler

        handler = DeltaStorageHandler(self.path, dict(self.storage_options))
        return pyarrow.fs.PyFileSystem(handler)

    def close(self) -> None:
        for name in _LIVE:
            self.__dict__.pop(name, None)

    def describe(self) -> str:
        return f"the Delta table '{self.path}'"

    def refresh(self) -> None:
        if "loaded" in self.__dict__:
            self.loaded.update_incremental()

    # -- columns -----------------------------------------------------------------------------------

    def row_type(self) -> RowType:
        return row_type_of(self.loaded.schema().to_json())

    def arrow_schema(self) -> Any:
        import pyarrow as pa

        return pa.schema(self.loaded.schema().to_arrow())

    def partition_columns(self) -> list[str]:
        return list(self.loaded.metadata().partition_columns)

    def add_columns(self, row_type: RowType) -> None:
        self.loaded.alter.add_columns(list(to_delta_schema(row_type).fields))
        self.refresh()

    # -- writing -----------------------------------------------------------------------------------

    def target_file_size(self) -> int:
        found = self.loaded.metadata().configuration.get(_TARGET_SIZE, "")
        return self.target_size or (int(found) if found.isdigit() else _DEFAULT_TARGET_SIZE)

    def partitions(self, data: Any) -> Iterable[tuple[Any, Any]]:
        return split_by_partition(data, self.partition_columns())

    def new_file(self, partition: Any, name: str) -> OutputFile:
        import pyarrow as pa

        columns = self.partition_columns()
        schema = pa.schema([field for field in self.arrow_schema() if field.name not in columns])
        path = partition_path(columns, partition) + name

        def describe(metadata: Any, size: int) -> Mapping[str, Any]:
            return {
                "path": path,
                "size": size,
                "partition": dict(zip(columns, partition, strict=True)),
                "stats": statistics(metadata),
            }

        return _DataFile(
            path, self._stream(path), schema, describe, lambda: self.delete_file(path), compression="snappy"
        )

    def new_change_file(self, name: str, schema: Any) -> OutputFile:
        path = f"{_CHANGES}/{name}"
        return ParquetOutput(
            path, self._stream(path), schema, lambda _metadata, _size: {}, lambda: self.delete_file(path)
        )

    def _stream(self, path: str) -> Any:
        return self.files.open_output_stream(path)

    def read_change_file(self, path: str) -> Any:
        import pyarrow.parquet

        with self.files.open_input_file(path) as stream:
            return pyarrow.parquet.read_table(stream)

    # -- committing --------------------------------------------------------------------------------

    def is_committed(self, committable: LakeCommittable) -> bool:
        version = self.loaded.transaction_version(committable.transaction)
        return version is not None and version >= committable.number

    def append(self, committable: LakeCommittable) -> None:
        self._add(committable, "append")

    def overwrite(self, committable: LakeCommittable, by_partition: bool) -> None:
        if by_partition and self.partition_columns():
            raise LakeError(
                f"Partitions of {self.describe()} cannot be overwritten.", hint="Overwrite the table, or delete rows."
            )
        self._add(committable, "overwrite")

    def _add(self, committable: LakeCommittable, mode: str) -> None:
        from deltalake.transaction import AddAction

        now = int(time.time() * 1000)
        actions = [
            AddAction(file["path"], file["size"], file["partition"], now, True, file["stats"])
            for file in committable.files
        ]
        with self._translating():
            self.loaded.create_write_transaction(
                actions,
                mode,
                self.loaded.schema(),
                partition_by=self.partition_columns(),
                commit_properties=self._properties(committable),
            )

    def apply_changes(
        self, committable: LakeCommittable, key: Sequence[str], upserts: Any, deleted: Any, name: str
    ) -> None:
        """Merges the rows by the key: one version of the table."""
        import pyarrow as pa

        schema = self.arrow_schema()
        nullable = pa.schema([field.with_nullable(True) for field in schema])
        rows = pa.concat_tables([to_schema(upserts, nullable), to_schema(deleted, nullable)])
        marks = pa.array([False] * upserts.num_rows + [True] * deleted.num_rows)
        matches = " AND ".join(f"target.{_quoted(column)} = source.{_quoted(column)}" for column in key)
        assignments = {_quoted(column): f"source.{_quoted(column)}" for column in schema.names}
        with self._translating():
            merger = self.loaded.merge(
                rows.append_column(_DELETED, marks),
                matches,
                source_alias="source",
                target_alias="target",
                commit_properties=self._properties(committable),
            )
            merger = merger.when_matched_delete(f"source.{_DELETED}")
            merger = merger.when_matched_update(assignments, f"NOT source.{_DELETED}")
            merger.when_not_matched_insert(assignments, f"NOT source.{_DELETED}").execute()

    def _properties(self, committable: LakeCommittable) -> Any:
        from deltalake.transaction import CommitProperties, Transaction

        transaction = Transaction(committable.transaction, committable.number)
        return CommitProperties(app_transactions=[transaction], max_commit_retries=0)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        from deltalake.exceptions import CommitFailedError, DeltaError

        try:
            yield
        except CommitFailedError as error:
            raise LakeConflictError(f"{self.describe()} was changed by another writer: {error}") from error
        except DeltaError as error:
            raise LakeError(f"{self.describe()} cannot be changed: {error}") from error

    def files_named(self, prefix: str) -> Iterator[str]:
        import pyarrow.fs as fs

        for info in self.files.get_file_info(fs.FileSelector("", recursive=True, allow_not_found=True)):
            path = info.path.lstrip("/")
            is_data = info.type == fs.FileType.File and not path.startswith("_delta_log")
            if is_data and info.base_name.startswith(prefix):
                yield path

    def referenced(self, paths: Sequence[str]) -> set[str]:
        import pyarrow as pa

        current = set(pa.table(self.loaded.get_add_actions()).column("path").to_pylist())
        # those that were replaced since are left to VACUUM
        return current.intersection(paths) | paths_in_log(self.files, paths)

    def delete_file(self, path: str) -> None:
        try:
            self.files.delete_file(path)
        except FileNotFoundError:
            return


class _DataFile(ParquetOutput):
    """Leaves out the columns of partitions, whose values the log has."""

    def write(self, data: Any) -> None:
        super().write(data.select(self.schema.names))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
