"""State bootstrapping: converts rows to state entries and writes canonical state files; runs on the executors."""

from __future__ import annotations

import pickle
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import Row as SparkRow

from firesteel.common.errors import FiresteelError
from firesteel.common.windows import TimeWindow
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import configure_filesystems
from firesteel.runtime.checkpoint.files import SnapshotFiles
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.key_groups import KeyGroupRange, encode_key, key_group_of
from firesteel.runtime.model.state_handles import (
    CANONICAL,
    FileSegment,
    KeyedStateHandle,
    OperatorStateHandle,
    StateBytes,
    StateMeta,
)
from firesteel.runtime.state.api.chunks import CanonicalWriter, is_timer_table, timer_table
from firesteel.runtime.state.api.pickling import dumps_by_value
from firesteel.savepoint.keyed_state import Entry, KeyedSlice, read_entries
from firesteel.spark.state_processor.reader_tasks import class_name, open_files
from firesteel.spark.state_processor.value_conversion import from_shape, from_spark
from firesteel.types.type_information import TypeInformation

__all__ = [
    "Accessor",
    "BootstrapError",
    "EntryMaker",
    "Keyed",
    "copy_segments",
    "existing_entries",
    "write_items",
    "write_keyed",
]

Accessor = str | Callable[[Any], Any]
"""The name of a column, or a function of the row."""

Keyed = tuple[tuple[int, str, bytes, bytes], bytes]
"""An entry on its way through the shuffle: its place (key group, table, namespace, key) and itself, pickled."""

_PROTOCOL = 5
_COPY_BYTES = 1 << 20


class BootstrapError(FiresteelError):
    """Rows that cannot become state."""


@dataclass(frozen=True)
class EntryMaker:
    """Turns rows into entries of one state or of timers."""

    meta: StateMeta
    table: str
    max_parallelism: int
    key: Accessor
    value: Accessor = "value"
    map_key: Accessor = "map_key"
    last_access: Accessor | None = None
    namespace: Accessor | None = None
    windows: tuple[str, str] | None = None
    domain: Accessor | None = None
    """Of timers: event or processing; their time is the value."""
    key_type: TypeInformation | None = None
    value_type: TypeInformation | None = None
    map_key_type: TypeInformation | None = None
    shapes: Mapping[str, Any] = field(default_factory=dict)
    """Of columns that were read from a state: by name, what their values were made from."""
    classes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Which classes the keys, values and map keys of the savepoint have, for those that must have one of them."""

    def __call__(self, rows: Iterable[SparkRow]) -> Iterator[Keyed]:
        """The entries of rows, ready for the shuffle; entries of a map go row by row."""
        now = time.time_ns() // 1_000_000
        get_key = self._getter(self.key, self.key_type, "key")
        get_namespace = self._namespace_getter()
        get_entry = None if self.domain is not None else self._entry_getter(now)
        for row in rows:
            key = self._not_none(row, "key", get_key(row))
            namespace = get_namespace(row)
            if self.domain is not None:
                table, stored_key, value = self._timer(row, key, namespace)
                yield _keyed(Entry(table, None, stored_key, value), self.max_parallelism)
            else:
                assert get_entry is not None
                yield _keyed(Entry(self.table, namespace, key, get_entry(row)), self.max_parallelism)

    def _getter(self, accessor: Accessor, type_info: TypeInformation | None, what: str) -> Callable[[SparkRow], Any]:
        """What takes a part of the state from a row: a function of the user's, or the value of a column."""
        if not isinstance(accessor, str):
            return accessor
        name = accessor
        if name in self.shapes:
            restore = from_shape(self.shapes[name])
            return lambda row: restore(row[name])
        type_ = None if type_info is None else type_info.to_logical()
        known = self.classes.get(what)
        if known is None:
            return lambda row: from_spark(row[name], type_)

        def get(row: SparkRow) -> Any:
            value = from_spark(row[name], type_)
            if value is not None:
                for part in value if what == "value" and self.meta.kind == "list" else (value,):
                    self._check_class(name, what, part, known)
            return value

        return get

    def _check_class(self, column: str, what: str, value: Any, known: frozenset[str]) -> None:
        if class_name(value) not in known:
            raise BootstrapError(
                f"State '{self.meta.name}': a {what} of column '{column}' is of class {class_name(value)}, but those "
                f"in the savepoint are of class {' or '.join(sorted(known))}: {value!r:.100}.",
                hint=f"Give a function of the row that makes the {what}, such as lambda row: uuid.UUID(row.key), or "
                "keep the column as it was read.",
            )

    def _entry_getter(self, now: int) -> Callable[[SparkRow], Any]:
        get_value = self._getter(self.value, self.value_type, "value")
        get_map_key = self._getter(self.map_key, self.map_key_type, "map key") if self.meta.kind == "map" else None
        return lambda row: self._stored(row, now, get_value, get_map_key)

    def _stored(
        self,
        row: SparkRow,
        now: int,
        get_value: Callable[[SparkRow], Any],
        get_map_key: Callable[[SparkRow], Any] | None,
    ) -> Any:
        value = get_value(row)
        ttl = self.meta.ttl
        access = now if self.last_access is None or not ttl else _get(row, self.last_access)
        if get_map_key is not None:
            # None is a value like any other in a map
            map_key = self._not_none(row, "map key", get_map_key(row))
            return {map_key: [value, access] if ttl else value}
        value = self._not_none(row, "value", value)
        if self.meta.kind == "list":
            if not isinstance(value, list):
                raise BootstrapError(
                    f"List state '{self.meta.name}' needs an array of elements per key, got {value!r:.100}.",
                    hint="Gather them: df.groupBy('key').agg(collect_list('value').alias('value')).",
                )
            times = access if isinstance(access, list) else [access] * len(value)
            return [list(pair) for pair in zip(value, times, strict=True)] if ttl else value
        return [value, access] if ttl else value

    def _timer(self, row: SparkRow, key: Any, namespace: Any) -> tuple[str, tuple[int, Any, Any], int]:
        assert self.domain is not None
        domain = _get(row, self.domain)
        if domain not in ("event", "processing"):
            raise BootstrapError(f"The time domain of a timer is 'event' or 'processing', got {domain!r}.")
        timestamp = self._not_none(row, "timestamp", _get(row, self.value))
        return timer_table(f"{self.table}/{domain}"), (int(timestamp), key, namespace), 0

    def _namespace_getter(self) -> Callable[[SparkRow], Any]:
        if self.namespace is not None:
            return self._getter(self.namespace, None, "namespace")
        if self.windows is None:
            return lambda _row: None
        first, second = self.windows

        def get(row: SparkRow) -> Any:
            start, end = row[first], row[second]
            return None if start is None else TimeWindow(start, end)

        return get

    def _not_none(self, row: SparkRow, what: str, value: Any) -> Any:
        if value is None:
            raise BootstrapError(f"State '{self.meta.name}': the {what} of {row!r:.200} is null.")
        return value


def _get(row: SparkRow, accessor: Accessor) -> Any:
    return from_spark(row[accessor]) if isinstance(accessor, str) else accessor(row)


def _keyed(entry: Entry, max_parallelism: int) -> Keyed:
    key = entry.key
    namespace = entry.namespace
    if is_timer_table(entry.table):
        timestamp, key, namespace = entry.key
        encoded = encode_key(key) + struct.pack("<q", timestamp)
    else:
        encoded = encode_key(key)
    place = (key_group_of(key, max_parallelism), entry.table, _encode_namespace(namespace), encoded)
    return place, _dumps(tuple(entry))


def _encode_namespace(namespace: Any) -> bytes:
    if namespace is None:
        return b""
    if isinstance(namespace, TimeWindow):
        return b"w" + struct.pack("<qq", namespace.start, namespace.end)
    try:
        return b"k" + encode_key(namespace)
    except FiresteelError:
        return b"p" + _dumps(namespace)


def _dumps(value: Any) -> bytes:
    try:
        return pickle.dumps(value, _PROTOCOL)
    except Exception:  # noqa: BLE001 - classes that only a script defines
        return dumps_by_value(value)


def existing_entries(
    settings: dict[str, str], without: frozenset[str], max_parallelism: int, pieces: Iterable[KeyedSlice]
) -> Iterator[Keyed]:
    """What slices of an existing savepoint hold, but for some tables."""
    with open_files(settings) as files:
        for piece in pieces:
            for entry in read_entries(piece, files, without=without):
                yield _keyed(entry, max_parallelism)


def write_keyed(
    settings: dict[str, str],
    directory: str,
    states: Mapping[str, StateMeta],
    max_parallelism: int,
    parallelism: int,
    subtask: int,
    entries: Iterable[Keyed],
) -> Iterator[tuple[int, KeyedStateHandle]]:
    """Writes the keyed state of one subtask; the entries come in order of key group, table, namespace and key."""
    files = _files(settings, directory)
    try:
        writer = CanonicalWriter(files)
        counts = dict.fromkeys(states, 0)
        timers = 0
        for group, entry in _merged(entries, states):
            if entry.table not in counts:
                raise BootstrapError(f"The savepoint does not record the kind of state '{entry.table}'.")
            if is_timer_table(entry.table) and not entry.value:
                timers += 1
                entry = entry._replace(value=timers)
            writer.add(group, *entry)
            counts[entry.table] += 1
        part = writer.finish()
        files.finish()
    except BaseException:
        files.discard()
        raise
    metas = tuple(_counted(states[table], counts[table]) for table in states)
    key_groups = KeyGroupRange.of(subtask, max_parallelism, parallelism)
    yield subtask, KeyedStateHandle(CANONICAL, key_groups, () if part is None else (part,), metas)


def _counted(meta: StateMeta, entries: int) -> StateMeta:
    return StateMeta(meta.name, meta.kind, meta.type, meta.ttl, entries)


def _merged(entries: Iterable[Keyed], states: Mapping[str, StateMeta]) -> Iterator[tuple[int, Entry]]:
    """The entries with those of one map together; two values for one key are an error."""
    place: tuple[int, str, bytes, bytes] | None = None
    current: Entry | None = None
    for next_place, data in entries:
        entry = Entry(*pickle.loads(data))
        if next_place != place:
            if current is not None and place is not None:
                yield place[0], current
            place, current = next_place, entry
            continue
        assert current is not None
        kind = states[entry.table].kind if entry.table in states else None
        if kind != "map" or not current.value.keys().isdisjoint(entry.value):
            again = f" and map key {next(iter(entry.value))!r:.60}" if kind == "map" else ""
            raise BootstrapError(
                f"State '{entry.table}' gets two values for key {entry.key!r:.100}{again}.",
                hint="Aggregate the DataFrame so that every key (of a window, of a map) has one row.",
            )
        current = current._replace(value={**current.value, **entry.value})
    if current is not None and place is not None:
        yield place[0], current


def write_items(
    settings: dict[str, str],
    directory: str,
    name: str,
    mode: str,
    item: Callable[[SparkRow], Any],
    subtask: int,
    rows: Iterable[SparkRow],
) -> Iterator[tuple[int, OperatorStateHandle]]:
    """Writes a list of operator state of one subtask."""
    files = _files(settings, directory)
    try:
        items = [_dumps(item(row)) for row in rows]
        data = files.write(pickle.dumps(items, _PROTOCOL), shared=False)
        files.finish()
    except BaseException:
        files.discard()
        raise
    yield subtask, OperatorStateHandle(name, mode, len(items), data)


def copy_segments(
    settings: dict[str, str], directory: str, segments: Iterable[FileSegment]
) -> Iterator[tuple[FileSegment, StateBytes]]:
    """Copies segments of state files, verified, into one file of a directory."""
    files = _files(settings, directory, inline_threshold=0)
    copied = []
    try:
        with open_files(settings) as source:
            for segment in segments:
                with source.open(segment) as stream:
                    copied.append((segment, files.write(iter(partial(stream.read, _COPY_BYTES), b""), shared=False)))
        files.finish()
    except BaseException:
        files.discard()
        raise
    yield from copied


def _files(settings: dict[str, str], directory: str, inline_threshold: int | None = None) -> SnapshotFiles:
    configuration = Configuration.from_dict(settings)
    configure_filesystems(configuration)
    location = CheckpointLocation(directory, directory)
    if inline_threshold is None:
        return SnapshotFiles(location)
    return SnapshotFiles(location, inline_threshold=inline_threshold)
