"""Chunks of keyed state files, in snapshots of the hashmap backend and in canonical savepoints.

A file is a sequence of frames: four bytes with the length (little endian), then a pickled *chunk*
``(table, namespace, keys, values)``:

- ``values`` is as long as ``keys``: the entries have these values;
- ``values`` is None: the keys were removed;
- ``keys`` is None: the namespaces in ``values`` were removed, with all their entries.

The last two occur in deltas only, where removed namespaces come first. A table is a state, by its name; or the timers
of a queue, by ``timer_table(name)``, with ``(timestamp, key, namespace)`` as keys, the numbers of their registration as
values, and the namespace None. A chunk is small, so that no call into pickle keeps other threads waiting.

A *canonical* part has its chunks in ascending order of key group, none spans two, and ``KeyedPart.key_groups`` has
the position of each group.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from firesteel.common.errors import CorruptStateError, StateIncompatibleError
from firesteel.runtime.model.key_groups import key_group_of
from firesteel.runtime.model.state_handles import KeyedPart
from firesteel.runtime.state.api.pickling import dumps_by_value, loads_by_name, not_picklable

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader

__all__ = [
    "CHUNK_ENTRIES",
    "CanonicalWriter",
    "Chunk",
    "PartWriter",
    "decode_chunks",
    "encode_chunk",
    "encode_chunks",
    "is_timer_table",
    "key_groups_of",
    "read_canonical",
    "read_part",
    "timer_table",
]

CHUNK_ENTRIES = 2_000
"""The most entries of a chunk."""

_CHUNK_BYTES = 256 * 1024
"""Chunks of large values have fewer entries, so that they are about this long."""

_PROTOCOL = 5
_CANONICAL_PART = "canonical"
_TIMERS = "_timers/"
_length = struct.Struct("<I")

_dumps = pickle.dumps
_loads = pickle.loads


class Chunk(NamedTuple):
    """Entries of one table and namespace."""

    table: str
    namespace: Any
    keys: list[Any] | None
    values: list[Any] | None


# ---- tables -----------------------------------------------------------------------------------------


def timer_table(queue: str) -> str:
    """The table of a timer queue.

    >>> timer_table("user-timers/event")
    '_timers/user-timers/event'
    """
    return _TIMERS + queue


def is_timer_table(table: str) -> bool:
    return table.startswith(_TIMERS)


def key_groups_of(table: str, keys: Iterable[Any], max_parallelism: int) -> list[int]:
    """The key group of each key of a table; a timer belongs to that of its own key."""
    if is_timer_table(table):
        return [key_group_of(timer[1], max_parallelism) for timer in keys]
    return [key_group_of(key, max_parallelism) for key in keys]


# ---- frames -----------------------------------------------------------------------------------------


def encode_chunk(table: str, namespace: Any, keys: Sequence[Any] | None, values: Sequence[Any] | None) -> bytes:
    try:
        data = _dumps((table, namespace, keys, values), _PROTOCOL)
    except Exception:  # noqa: BLE001 - user classes may raise anything
        try:
            data = dumps_by_value((table, namespace, keys, values))
        except Exception as error:
            raise not_picklable(table, keys, values, error) from error
    return _length.pack(len(data)) + data


def encode_chunks(table: str, namespace: Any, keys: Sequence[Any], values: Sequence[Any] | None) -> Iterator[bytes]:
    """Any number of entries (or, with values None, removed keys) as frames."""
    start, size = 0, CHUNK_ENTRIES if values is None else CHUNK_ENTRIES // 8
    while start < len(keys):
        end = start + size
        frame = encode_chunk(table, namespace, keys[start:end], None if values is None else values[start:end])
        yield frame
        start = end
        size = max(1, min(CHUNK_ENTRIES, size * _CHUNK_BYTES // len(frame)))


def decode_chunks(data: bytes | bytearray | memoryview) -> Iterator[Chunk]:
    """The chunks of a sequence of frames."""
    return _read_chunks(io.BytesIO(data), len(data))


def _read_chunks(stream: IO[bytes], length: int) -> Iterator[Chunk]:
    read, unpack, header = stream.read, _length.unpack, _length.size
    while length > 0:
        prefix = read(header)
        if len(prefix) < header:
            raise CorruptStateError("A state file ends within a chunk.")
        (size,) = unpack(prefix)
        length -= header + size
        data = read(size)
        if len(data) < size or length < 0:
            raise CorruptStateError("A state file ends within a chunk.")
        yield _decode(data)


def _decode(data: bytes) -> Chunk:
    try:
        return Chunk(*_loads(data))
    except (AttributeError, ImportError):
        pass
    except Exception as error:
        raise _unreadable(error) from error
    try:
        return Chunk(*loads_by_name(data))
    except Exception as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> StateIncompatibleError:
    return StateIncompatibleError(
        f"State could not be read: {type(error).__name__}: {error}",
        hint="The classes of keys and values must be importable where the job runs, under the names they had "
        "when the state was written.",
    )


# ---- parts ------------------------------------------------------------------------------------------


class PartWriter:
    """Writes the frames of one part as a stream, which is never held whole."""

    def __init__(self, files: SnapshotFiles, *, shared: bool):
        self._files = files
        self._shared = shared
        self._stream: Any = None
        self.length = 0

    def write(self, frame: bytes) -> None:
        if self._stream is None:
            self._stream = self._files.write_stream(shared=self._shared)
        self._stream.write(frame)
        self.length += len(frame)

    def finish(self, name: str, key_groups: tuple[tuple[int, int, int], ...] | None = None) -> KeyedPart | None:
        """The part, or None if nothing was written."""
        return None if self._stream is None else KeyedPart(name, self._stream.finish(), key_groups)


def read_part(part: KeyedPart, files: StateFileReader) -> Iterator[Chunk]:
    """The chunks of a part, in order."""
    with files.open(part.data) as stream:
        yield from _read_chunks(stream, part.data.length)


class CanonicalWriter:
    """Writes a canonical part. Entries come in ascending order of key group; within a group in any order."""

    def __init__(self, files: SnapshotFiles, *, shared: bool = False):
        self._writer = PartWriter(files, shared=shared)
        self._index: list[tuple[int, int, int]] = []
        self._group: int | None = None
        self._group_start = 0
        self._buffers: dict[tuple[str, Any], tuple[list[Any], list[Any]]] = {}

    def add(self, key_group: int, table: str, namespace: Any, key: Any, value: Any) -> None:
        if key_group != self._group:
            self._turn_to(key_group)
        buffer = self._buffers.get((table, namespace))
        if buffer is None:
            buffer = self._buffers[table, namespace] = ([], [])
        keys, values = buffer
        keys.append(key)
        values.append(value)
        if len(keys) >= CHUNK_ENTRIES:
            del self._buffers[table, namespace]
            self.add_entries(key_group, table, namespace, keys, values)

    def add_entries(
        self, key_group: int, table: str, namespace: Any, keys: Sequence[Any], values: Sequence[Any]
    ) -> None:
        """Adds entries of one key group."""
        for frame in encode_chunks(table, namespace, keys, values):
            self.add_frame(key_group, frame)

    def add_frame(self, key_group: int, frame: bytes) -> None:
        """Adds a chunk of one key group that is encoded already."""
        if key_group != self._group:
            self._turn_to(key_group)
        self._writer.write(frame)

    def finish(self) -> KeyedPart | None:
        """The part, or None if there were no entries."""
        self._end_group()
        return self._writer.finish(_CANONICAL_PART, tuple(self._index))

    def _turn_to(self, key_group: int) -> None:
        if self._group is not None and key_group < self._group:
            raise ValueError(f"key group {key_group} comes after {self._group}")
        self._end_group()
        self._group = key_group
        self._group_start = self._writer.length

    def _end_group(self) -> None:
        group = self._group
        if group is None:
            return
        buffers, self._buffers = self._buffers, {}
        for (table, namespace), (keys, values) in buffers.items():
            for frame in encode_chunks(table, namespace, keys, values):
                self._writer.write(frame)
        if self._writer.length > self._group_start:
            self._index.append((group, self._group_start, self._writer.length - self._group_start))
        self._group = None


def read_canonical(
    part: KeyedPart, files: StateFileReader, groups: Iterable[int] | None = None
) -> Iterator[tuple[int, Chunk]]:
    """The chunks of a canonical part with their key groups; of all groups, or only of those given."""
    wanted = None if groups is None else frozenset(groups)
    index = [entry for entry in part.key_groups or () if wanted is None or entry[0] in wanted]
    if not index:
        return
    with files.open(part.data) as stream:
        for group, offset, length in index:
            stream.seek(offset)
            for chunk in _read_chunks(stream, length):
                yield group, chunk
