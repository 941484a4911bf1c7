"""Compaction of incremental snapshots: merges the base of a state and its deltas in a background thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import sleep
from typing import Any

from firesteel.runtime.state.api.backend import VOID_NAMESPACE
from firesteel.runtime.state.api.chunks import (
    CHUNK_ENTRIES,
    CanonicalWriter,
    Chunk,
    encode_chunk,
    encode_chunks,
    key_groups_of,
)
from firesteel.runtime.state.hashmap.state_table import Cleanup

__all__ = ["CanonicalGroups", "Source", "delta_frames", "frames_of", "merge"]

Source = Callable[[], Iterator[Chunk]]
"""Reads the chunks of a base or a delta from the beginning."""

_BUFFERED_NAMESPACES = 10_000


def merge(
    sources: Sequence[Source],
    *,
    is_delta: bool = False,
    cleanups: Mapping[str, Cleanup] | None = None,
    now: int = 0,
) -> Iterator[Chunk]:
    """What the sources, oldest first, amount to: for each key the last one that mentions it counts.

    They are read from the newest to the oldest, so only the keys of deltas are held in memory, never the values. Where
    the result is a delta itself, what was removed stays removed; its removed namespaces come last here.
    """
    hidden: dict[tuple[str, Any], set[Any]] = {}
    dropped: set[tuple[str, Any]] = set()
    for number in range(len(sources) - 1, -1, -1):
        mentioned: list[tuple[tuple[str, Any], list[Any]]] = []
        dropped_here: list[tuple[str, Any]] = []
        for chunk in sources[number]():
            # release the interpreter lock after every chunk, so that the job's thread does not wait for it
            sleep(0)
            if chunk.keys is None:
                dropped_here += [(chunk.table, namespace) for namespace in chunk.values or ()]
                continue
            place = (chunk.table, chunk.namespace)
            if place in dropped:
                continue
            left = _visible(chunk, hidden.get(place))
            if left.values is not None and cleanups and chunk.table in cleanups:
                left = _clean(left, cleanups[chunk.table], now)
            if left.keys and (left.values is not None or is_delta):
                yield left
            if number:
                mentioned.append((place, chunk.keys))
        for place, keys in mentioned:
            hidden.setdefault(place, set()).update(keys)
        dropped.update(dropped_here)
        for place in dropped_here:
            hidden.pop(place, None)
    if is_delta:
        by_table: dict[str, list[Any]] = {}
        for table, namespace in dropped:
            by_table.setdefault(table, []).append(namespace)
        for table, namespaces in by_table.items():
            for start in range(0, len(namespaces), CHUNK_ENTRIES):
                yield Chunk(table, VOID_NAMESPACE, None, namespaces[start : start + CHUNK_ENTRIES])


def delta_frames(sources: Sequence[Source]) -> list[bytes]:
    """Several deltas as one."""
    dropped: list[bytes] = []

    def but_dropped() -> Iterator[Chunk]:
        for chunk in merge(sources, is_delta=True):
            if chunk.keys is None:
                dropped.append(encode_chunk(*chunk))
            else:
                yield chunk

    encoded = list(frames_of(but_dropped()))
    return dropped + encoded


def frames_of(chunks: Iterator[Chunk]) -> Iterator[bytes]:
    """Encodes merged chunks; small ones of one namespace become one."""
    buffers: dict[tuple[str, Any], tuple[list[Any], list[Any]]] = {}
    for table, namespace, keys, values in chunks:
        if keys is None or values is None:
            yield encode_chunk(table, namespace, keys, values)
            continue
        buffer = buffers.get((table, namespace))
        if buffer is None:
            buffer = buffers[table, namespace] = ([], [])
        buffer[0].extend(keys)
        buffer[1].extend(values)
        if len(buffer[0]) >= CHUNK_ENTRIES:
            del buffers[table, namespace]
            yield from encode_chunks(table, namespace, *buffer)
        elif len(buffers) > _BUFFERED_NAMESPACES:
            yield from _flush(buffers)
    yield from _flush(buffers)


class CanonicalGroups:
    """Sorts entries by key group; holds them encoded, which takes much less memory than the objects."""

    def __init__(self, max_parallelism: int):
        self._max_parallelism = max_parallelism
        self._frames: dict[int, list[bytes]] = {}
        self._buffers: dict[tuple[int, str, Any], tuple[list[Any], list[Any]]] = {}
        self.counts: dict[str, int] = {}

    def add(self, table: str, namespace: Any, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Adds entries of any key groups."""
        self.counts[table] = self.counts.get(table, 0) + len(keys)
        buffers = self._buffers
        groups = key_groups_of(table, keys, self._max_parallelism)
        for group, key, value in zip(groups, keys, values, strict=True):
            buffer = buffers.get((group, table, namespace))
            if buffer is None:
                buffer = buffers[group, table, namespace] = ([], [])
            buffer[0].append(key)
            buffer[1].append(value)
            if len(buffer[0]) >= CHUNK_ENTRIES:
                self._encode(group, table, namespace)
        if len(buffers) > _BUFFERED_NAMESPACES:
            self._encode_all()

    def write(self, writer: CanonicalWriter) -> None:
        """Writes everything in order of key groups."""
        self._encode_all()
        for group in sorted(self._frames):
            for frame in self._frames.pop(group):
                writer.add_frame(group, frame)

    def _encode_all(self) -> None:
        for place in list(self._buffers):
            self._encode(*place)

    def _encode(self, group: int, table: str, namespace: Any) -> None:
        keys, values = self._buffers.pop((group, table, namespace))
        self._frames.setdefault(group, []).extend(encode_chunks(table, namespace, keys, values))


def _visible(chunk: Chunk, hidden: set[Any] | None) -> Chunk:
    table, namespace, keys, values = chunk
    if not keys or not hidden or hidden.isdisjoint(keys):
        return chunk
    if values is None:
        return Chunk(table, namespace, [key for key in keys if key not in hidden], None)
    pairs = [(key, value) for key, value in zip(keys, values, strict=True) if key not in hidden]
    return Chunk(table, namespace, [key for key, _ in pairs], [value for _, value in pairs])


def _clean(chunk: Chunk, cleanup: Cleanup, now: int) -> Chunk:
    table, namespace, keys, values = chunk
    pairs = zip(keys or (), values or (), strict=True)
    left = [(key, value) for key, stored in pairs if (value := cleanup(stored, now)) is not None]
    return Chunk(table, namespace, [key for key, _ in left], [value for _, value in left])


def _flush(buffers: dict[tuple[str, Any], tuple[list[Any], list[Any]]]) -> Iterator[bytes]:
    for (table, namespace), (keys, values) in buffers.items():
        yield from encode_chunks(table, namespace, keys, values)
    buffers.clear()
