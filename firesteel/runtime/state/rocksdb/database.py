"""One RocksDB database: a column family per state and per timer queue, and one for metadata."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

from rocksdict import AccessType, Checkpoint, ColumnFamily, Rdict, ReadOptions, WriteBatch, WriteOptions

from firesteel.runtime.state.api.chunks import is_timer_table
from firesteel.runtime.state.rocksdb.classes import definition_of, known_classes, learn_class
from firesteel.runtime.state.rocksdb.options import RocksDBOptions

__all__ = ["SST", "ColumnFamilyTable", "Database", "View", "files_of"]

SST = ".sst"
_DEFAULT = "default"
_TABLE = "table/"
_BATCH_ROWS = 2_000

_SEQUENCE = b"sequence"
_CLASS = b"class/"


def _without_log() -> WriteOptions:
    # what is lost with the process is recovered from a checkpoint
    made = WriteOptions()
    made.disable_wal = True  # type: ignore[method-assign, assignment]
    return made


def _scan(source: Rdict, start: bytes, end: bytes) -> Generator[tuple[bytes, bytes], None, None]:
    """The rows from start (included) to end (excluded), as they are when the first one is asked for."""
    # the iterator only points to its bounds: this frame keeps them
    bounds = ReadOptions()
    bounds.set_iterate_upper_bound(end)
    yield from source.items(False, start, bounds)


class View:
    """The rows of a table as they were when the view was made, to be read once in order; from any thread."""

    def __init__(self, family: Rdict, start: bytes):
        # an iterator sees what there was when it was made; those of rocksdict's Snapshot see what came later, too
        self._rows: Iterator[tuple[bytes, bytes]] = family.items(False, start)  # type: ignore[assignment]
        self._next = next(self._rows, None)

    def rows_until(self, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The rows that were not read yet, before ``end``."""
        row, rows = self._next, self._rows
        while row is not None and row[0] < end:
            yield row
            row = self._next = next(rows, None)


class ColumnFamilyTable:
    """One column family."""

    __slots__ = ("_handle", "_write_batch", "delete", "family", "get", "name", "put")

    def __init__(self, name: str, family: Rdict, handle: ColumnFamily, write_batch: Callable[[WriteBatch], None]):
        self.name = name
        self.family = family
        self._handle: ColumnFamily | None = handle
        self._write_batch = write_batch
        # looked up once: these are the hot path
        self.get: Callable[[bytes], bytes | None] = family.get
        self.put: Callable[[bytes, bytes], None] = family.put
        self.delete: Callable[[bytes], None] = family.delete

    @property
    def is_timers(self) -> bool:
        """Whether it holds timers, not state."""
        return is_timer_table(self.name)

    def scan(self, start: bytes, end: bytes) -> Generator[tuple[bytes, bytes], None, None]:
        """The rows from start (included) to end (excluded), as they are when the first one is asked for."""
        return _scan(self.family, start, end)

    def scan_prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The rows that begin like that; what may follow begins with no byte 255."""
        return _scan(self.family, prefix, prefix + b"\xff")

    def view(self, start: bytes) -> View:
        """The rows from start on, as they are now."""
        return View(self.family, start)

    def change(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Writes rows, or deletes those without a value."""
        batch, put, delete = self._new_batch()
        count = 0
        for key, value in rows:
            if value is None:
                delete(key)
            else:
                put(key, value)
            count += 1
            if count % _BATCH_ROWS == 0:
                self._write_batch(batch)
                batch, put, delete = self._new_batch()
        if count % _BATCH_ROWS:
            self._write_batch(batch)

    def estimated_rows(self) -> int:
        """About how many rows there are."""
        return self.family.property_int_value("rocksdb.estimate-num-keys") or 0

    def close(self) -> None:
        """Releases the database, so that a reference to the table does not keep it open."""
        self.family.close()
        self._handle = None

    def _new_batch(self) -> tuple[WriteBatch, Any, Any]:
        batch = WriteBatch(raw_mode=True)
        batch.set_default_column_family(self._handle)
        return batch, batch.put, batch.delete


class Database:
    """An open database."""

    def __init__(self, path: Path, options: RocksDBOptions, *, read_only: bool = False):
        self.path = path
        self._options = options
        families = self._families(path)
        self._write_options = _without_log()
        self._db = Rdict(
            str(path),
            options.database(),
            {name: options.column_family() for name in families},
            AccessType.read_only(False) if read_only else AccessType.read_write(),
        )
        self._db.set_write_options(self._write_options)
        self._tables: dict[str, ColumnFamilyTable] = {}
        self._classes: set[tuple[str, str]] = set()
        for name in families:
            self._add(name.removeprefix(_TABLE), self._db.get_column_family(name))

    @staticmethod
    def _families(path: Path) -> list[str]:
        if not (path / "CURRENT").exists():
            return []
        return [name for name in Rdict.list_cf(str(path)) if name != _DEFAULT]

    @property
    def tables(self) -> dict[str, ColumnFamilyTable]:
        """By name."""
        return self._tables

    def table(self, name: str) -> ColumnFamilyTable:
        """The table of that name; a new one if there is none."""
        found = self._tables.get(name)
        if found is None:
            found = self._add(name, self._db.create_column_family(_TABLE + name, self._options.column_family()))
        return found

    def _add(self, name: str, family: Rdict) -> ColumnFamilyTable:
        family.set_write_options(self._write_options)
        table = ColumnFamilyTable(name, family, self._db.get_column_family_handle(_TABLE + name), self._write)
        self._tables[name] = table
        return table

    def _write(self, batch: WriteBatch) -> None:
        self._db.write(batch, self._write_options)

    @property
    def sequence(self) -> int:
        """A number that no list element or timer of the last checkpoint exceeds."""
        stored = self._db.get(_SEQUENCE)
        return 0 if stored is None else int.from_bytes(stored, "big")

    @sequence.setter
    def sequence(self, value: int) -> None:
        self._db.put(_SEQUENCE, value.to_bytes(8, "big"))

    def store_classes(self) -> None:
        """Keeps the definitions of all classes that values may name."""
        for name, cls in known_classes().items():
            if name not in self._classes:
                self._db.put(_CLASS + "\0".join(name).encode(), definition_of(cls))
                self._classes.add(name)

    def learn_classes(self) -> None:
        """Loads the classes that values of this database may name."""
        for _name, definition in _scan(self._db, _CLASS, _CLASS + b"\xff"):
            learned = learn_class(definition)
            if learned is not None:
                self._classes.add(learned)

    def clip(self, start: bytes, end: bytes) -> None:
        """Deletes all rows of tables before start and from end on."""
        for table in self._tables.values():
            table.family.delete_range(b"", start)
            table.family.delete_range(end, b"\xff" * 16)

    def checkpoint(self, path: Path) -> None:
        """Writes what is in memory to files and links all files into a new directory."""
        Checkpoint(self._db).create_checkpoint(str(path))

    def close(self) -> None:
        """Closes the database; its files stay."""
        for table in self._tables.values():
            table.close()
        self._tables.clear()
        self._db.close()


def files_of(path: Path) -> list[str]:
    """The files of a database directory that a checkpoint of it consists of."""
    # the log is empty, as nothing is written to it; options come from the configuration of the opening process
    names = (file.name for file in path.iterdir())
    return sorted(name for name in names if name.endswith(SST) or name == "CURRENT" or name.startswith("MANIFEST"))
