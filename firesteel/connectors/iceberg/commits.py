"""Snapshots of Iceberg that are made once: each has the id of what was committed with it in its summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from firesteel.connectors.iceberg.data_files import data_file
from firesteel.connectors.lakes.changes import rows_without
from firesteel.connectors.lakes.committable import LakeCommittable
from firesteel.connectors.lakes.errors import LakeConflictError, LakeError
from firesteel.connectors.lakes.writer import file_name

if TYPE_CHECKING:
    from firesteel.connectors.iceberg.table import IcebergTable

__all__ = ["append", "apply_changes", "is_committed", "overwrite", "referenced"]

JOB_ID = "flink.job-id"
OPERATOR_ID = "flink.operator-id"
MAX_CHECKPOINT_ID = "flink.max-committed-checkpoint-id"
TRANSACTION = "firesteel.transaction"
"""The attempt of a job: checkpoint ids grow within it, and may come again in another one."""
_MAX_KEYS_IN_FILTER = 200
_RETRIES = "commit.retry.num-retries"


def _summary(committable: LakeCommittable) -> dict[str, str]:
    return {
        JOB_ID: committable.sink_id,
        OPERATOR_ID: committable.writer,
        MAX_CHECKPOINT_ID: str(committable.number),
        TRANSACTION: committable.transaction,
    }


def is_committed(table: Any, committable: LakeCommittable) -> bool:
    """Whether an ancestor of the current snapshot has this committable, or a later one of its writer."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        summary = snapshot.summary
        if summary is not None and summary.get(TRANSACTION) == committable.transaction:
            # the latest one of the writer: numbers grow
            return int(summary.get(MAX_CHECKPOINT_ID) or -1) >= committable.number
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return False


@contextmanager
def _translating(table: Any) -> Iterator[None]:
    from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ValidationException

    name = ".".join(table.name())
    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise LakeConflictError(f"The table '{name}' was changed by another writer: {error}") from error
    except CommitStateUnknownException as error:
        # the next look at the table tells whether the commit succeeded
        raise LakeConflictError(f"The catalog did not answer to a commit of '{name}': {error}") from error
    except NotImplementedError as error:
        raise LakeError(f"The table '{name}' cannot be changed: {error}.") from error


def _once(table: Any) -> Any:
    """A transaction that pyiceberg does not repeat after a conflict.

    It would not see that another process, an attempt that is not dead yet, has committed the same files.
    """
    # only what this process has read of the table: properties are not part of a commit
    table.metadata.properties[_RETRIES] = "0"
    return table.transaction()


def _files(table: Any, files: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [data_file(plain, table.format_version) for plain in files]


def append(table: Any, committable: LakeCommittable) -> None:
    """Adds a snapshot with the files."""
    with _translating(table), _once(table) as transaction:
        with transaction.update_snapshot(snapshot_properties=_summary(committable)).fast_append() as snapshot:
            for file in _files(table, committable.files):
                snapshot.append_data_file(file)


def overwrite(table: Any, committable: LakeCommittable, by_partition: bool) -> None:
    """Replaces the files of the table, or of the partitions that the new files have."""
    files = _files(table, committable.files)
    partitions = {tuple(file.partition) for file in files}
    with _translating(table):
        old = [task.file for task in table.scan().plan_files()]
        if by_partition:
            old = [file for file in old if tuple(file.partition) in partitions]
        _replace(table, committable, old, files)


def _replace(table: Any, committable: LakeCommittable, old: Sequence[Any], new: Sequence[Any]) -> None:
    with _once(table) as transaction:
        with transaction.update_snapshot(snapshot_properties=_summary(committable)).overwrite() as snapshot:
            for file in old:
                snapshot.delete_data_file(file)
            for file in new:
                snapshot.append_data_file(file)


def apply_changes(
    description: IcebergTable, committable: LakeCommittable, key: Sequence[str], upserts: Any, deleted: Any, name: str
) -> None:
    """Copies the files that have rows with changed keys, without these rows, and adds the new rows: one snapshot.

    pyiceberg writes no files of deletes, so this is a copy on write. Files are left alone whose statistics show that
    they have none of the keys.
    """
    import pyarrow as pa
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    table = description.loaded
    schema = description.arrow_schema()
    key_schema = pa.schema([pa.field(column, schema.field(column).type) for column in key])
    keys = pa.concat_tables(
        [part.select(list(key)).cast(key_schema).replace_schema_metadata(None) for part in (upserts, deleted)]
    )
    written: list[Mapping[str, Any]] = []
    replaced = []

    def write(rows: Any) -> None:
        for partition, part in description.partitions(rows):
            file = description.new_file(partition, file_name(name, len(written)))
            file.write(part)
            written.append(file.close())

    done = False
    try:
        with _translating(table):
            for task in table.scan(row_filter=_having(keys)).plan_files():
                scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
                rows = scan.to_table([task]).cast(schema)
                kept = rows_without(rows, keys)
                if kept is not None:
                    replaced.append(task.file)
                    if kept.num_rows:
                        write(kept)
            if upserts.num_rows:
                write(upserts)
            _replace(table, committable, replaced, _files(table, written))
            done = True
    except LakeConflictError:
        description.refresh()
        done = is_committed(table, committable)
        if not done:
            raise
    finally:
        if not done:
            for file in written:
                description.delete_file(file["file_path"])


def _having(keys: Any) -> Any:
    """A filter for the files that may have rows with the keys."""
    import pyarrow.compute as pc
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, In, LessThanOrEqual

    found: Any = AlwaysTrue()
    for name in keys.column_names:
        column = keys.column(name)
        if column.null_count or not keys.num_rows:
            continue
        kind = str(column.type)
        if not kind.startswith(("int", "string", "large_string", "date32", "decimal")):
            continue
        if keys.num_rows <= _MAX_KEYS_IN_FILTER:
            found = And(found, In(name, set(column.to_pylist())))
        else:
            bounds = pc.min_max(column).as_py()
            found = And(found, And(GreaterThanOrEqual(name, bounds["min"]), LessThanOrEqual(name, bounds["max"])))
    return found


def referenced(table: Any, paths: Sequence[str]) -> set[str]:
    """Those of the paths that are data files of a snapshot that has not expired."""
    wanted = set(paths)
    found: set[str] = set()
    seen: set[str] = set()
    for snapshot in table.snapshots():
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                if entry.data_file.file_path in wanted:
                    found.add(entry.data_file.file_path)
    return found
