"""Incremental snapshots of the hashmap backend: the files of a snapshot, and the changes held in memory.

The state at a snapshot is a base and deltas, each a part of its own. The parts of the last complete checkpoint are the
*chain*. Files of a checkpoint may be used again only once it is complete, and are deleted once a later one is complete
that does not use them. So:

1. The synchronous part pickles what changed since the last snapshot. These bytes are *held*.
2. A checkpoint consists of the chain and of all that is held, which it writes. Two checkpoints under way at once both
   write what is held.
3. When a checkpoint is complete, its parts are the chain, and what it wrote need not be held. If it is aborted,
   nothing changes, and the next one writes the same bytes again.
4. Another checkpoint may still be under way that started before step 3 and wrote the same bytes to files of its own.
   Should it complete as well, the chain is deleted but for what that one uses too. As long as its end is open, a
   snapshot relies on no more of the chain than that, and the bytes of the rest stay held.
5. Without a chain (the first checkpoint) everything is pickled and held as a base; so it is when far more is held than
   the state amounts to, because no checkpoint completes, and when steps 4 and 6 leave nothing to build on.
6. When there are many deltas, a checkpoint merges them into one as it writes; when they outweigh the base, it merges
   all into a new base. Both happen in the thread that writes, and not while a savepoint reads what would be deleted.
7. A savepoint reads the chain back, and merges it with what is held. Its own files are the user's and never shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import CorruptStateError
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import CANONICAL, KeyedPart, KeyedStateHandle, StateMeta
from firesteel.runtime.state.api.backend import DerivedTimers
from firesteel.runtime.state.api.chunks import CanonicalWriter, Chunk, PartWriter, decode_chunks, read_part
from firesteel.runtime.state.hashmap.snapshot_merging import CanonicalGroups, Source, delta_frames, frames_of, merge
from firesteel.runtime.state.hashmap.state_table import Cleanup

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader

__all__ = ["BASE", "DELTA", "HashMapSnapshot", "Held", "Snapshots"]

BASE, DELTA = "base", "delta"

_MAX_DELTAS = 20
_MIN_BASE = 256 * 1024
"""Bytes of deltas that are never worth a new base."""
_MAX_HELD = 32


@dataclass(frozen=True, slots=True)
class Held:
    """Pickled state that is in no complete checkpoint yet."""

    number: int
    name: str
    frames: tuple[bytes, ...]

    @property
    def length(self) -> int:
        """Bytes."""
        return sum(map(len, self.frames))

    def chunks(self) -> Iterator[Chunk]:
        for frame in self.frames:
            yield from decode_chunks(frame)


@dataclass(slots=True)
class HashMapSnapshot:
    """One snapshot on its way: what it consists of, fixed in the synchronous part."""

    number: int
    kind: SnapshotKind
    key_groups: KeyGroupRange
    max_parallelism: int
    states: tuple[StateMeta, ...]
    chain: tuple[KeyedPart, ...]
    held: tuple[Held, ...]
    open_files: Callable[[], StateFileReader]
    format: str
    """Of a snapshot that is not canonical: the name of the backend."""
    cleanups: Mapping[str, Cleanup] = field(default_factory=dict)
    now: int = 0
    shares: bool = False
    """Later checkpoints may use its files again."""
    merges: str | None = None
    """BASE: everything into a new base; DELTA: the deltas into one."""
    derived: DerivedTimers | None = None
    parts: tuple[KeyedPart, ...] | None = None
    is_over: bool = False
    """Written, or given up: it reads no files any more."""
    found_corrupt: bool = False
    """A file of the chain could not be read back."""

    def write(self, files: SnapshotFiles) -> KeyedStateHandle:
        """Writes what is not in files yet, or all of it."""
        try:
            if self.kind is SnapshotKind.SAVEPOINT:
                return self._write_canonical(files)
            if self.merges is None:
                written = (_write_part(files, held.name, held.frames, self.shares) for held in self.held)
                parts = self.chain + tuple(part for part in written if part is not None)
            else:
                parts = self._write_merged(files, self.merges)
            self.parts = parts
            return KeyedStateHandle(self.format, self.key_groups, parts, self.states)
        except CorruptStateError:
            self.found_corrupt = True
            raise
        finally:
            self.is_over = True

    def discard(self) -> None:
        """The snapshot will not be written; what it holds the next one needs just as well."""
        self.is_over = True

    @property
    def kept(self) -> tuple[KeyedPart, ...]:
        """The parts of the chain that it uses as they are."""
        if self.merges == BASE:
            return ()
        return self.chain if self.merges is None else tuple(part for part in self.chain if part.name == BASE)

    def _write_merged(self, files: SnapshotFiles, into: str) -> tuple[KeyedPart, ...]:
        reader = self.open_files()
        try:
            if into == DELTA:
                deltas = self._sources(reader, self.chain[len(self.kept) :])
                merged = _write_part(files, DELTA, delta_frames(deltas), self.shares)
                return self.kept if merged is None else (*self.kept, merged)
            chunks = merge(self._sources(reader, self.chain), cleanups=self.cleanups, now=self.now)
            whole = _write_part(files, BASE, frames_of(chunks), self.shares)
            return () if whole is None else (whole,)
        finally:
            reader.close()

    def _write_canonical(self, files: SnapshotFiles) -> KeyedStateHandle:
        groups = CanonicalGroups(self.max_parallelism)
        derived, number = self.derived, 0
        reader = self.open_files()
        try:
            for table, namespace, keys, values in merge(
                self._sources(reader, self.chain), cleanups=self.cleanups, now=self.now
            ):
                assert keys is not None
                assert values is not None
                if derived is not None and table in derived.omitted:
                    continue
                groups.add(table, namespace, keys, values)
                if derived is not None and table == derived.source:
                    timers = derived.timers(namespace, keys)
                    groups.add(derived.table, None, timers, range(number + 1, number + len(timers) + 1))
                    number += len(timers)
        finally:
            reader.close()
        writer = CanonicalWriter(files)
        groups.write(writer)
        part = writer.finish()
        return KeyedStateHandle(
            CANONICAL, self.key_groups, () if part is None else (part,), self._canonical_states(groups.counts)
        )

    def _canonical_states(self, counts: Mapping[str, int]) -> tuple[StateMeta, ...]:
        omitted: frozenset[str] = frozenset()
        extra: list[StateMeta] = []
        if self.derived is not None:
            omitted = self.derived.omitted | {self.derived.table}
            extra.append(StateMeta(self.derived.table, "timers", None, False, 0))
        kept = [meta for meta in self.states if meta.name not in omitted]
        return tuple(
            StateMeta(meta.name, meta.kind, meta.type, meta.ttl, counts.get(meta.name, 0)) for meta in kept + extra
        )

    def _sources(self, reader: StateFileReader, parts: Sequence[KeyedPart]) -> list[Source]:
        return [partial(read_part, part, reader) for part in parts] + [held.chunks for held in self.held]


def _write_part(files: SnapshotFiles, name: str, frames: Any, shared: bool) -> KeyedPart | None:
    writer = PartWriter(files, shared=shared)
    for frame in frames:
        writer.write(frame)
    return writer.finish(name)


class Snapshots:
    """Keeps the books of incremental snapshots: chain, held bytes, and snapshots under way. See the module's steps."""

    def __init__(self) -> None:
        self._chain: tuple[KeyedPart, ...] | None = None
        self._chain_number = 0
        self._tail: tuple[Held, ...] = ()
        """What the last parts of the chain consist of, while step 4 needs it."""
        self._held: list[Held] = []
        self._number = 0
        self._under_way: dict[int, HashMapSnapshot] = {}

    def start_from(self, parts: tuple[KeyedPart, ...]) -> None:
        """The state was restored from parts that may be used again."""
        self._chain = parts

    def needs_everything(self) -> bool:
        """Whether the next snapshot must pickle all there is (step 5)."""
        ground = self._ground()
        if ground is None:
            return True
        if self._is_savepoint_reading():
            return False
        chain, held = ground
        whole = sum(part.data.length for part in chain) + sum(item.length for item in held if item.name == BASE)
        deltas = [item.length for item in held if item.name == DELTA]
        return len(deltas) > _MAX_HELD or sum(deltas) > max(2 * whole, _MIN_BASE)

    def hold(self, name: str, frames: Sequence[bytes]) -> None:
        """Step 1: keeps newly pickled state."""
        self._number += 1
        if name == BASE:
            self._held.clear()
        if frames or name == BASE:
            self._held.append(Held(self._number, name, tuple(frames)))

    def prepare(self, checkpoint_id: int, snapshot: HashMapSnapshot) -> HashMapSnapshot:
        """Step 2: fixes what a snapshot consists of, which is everything pickled so far."""
        ground = self._ground()
        assert ground is not None
        snapshot.number = self._number
        snapshot.chain, snapshot.held = ground
        if snapshot.kind is SnapshotKind.CHECKPOINT:
            if not self._is_savepoint_reading():
                snapshot.merges = _worth_merging(snapshot)
        elif not any(held.name == BASE and held.number == self._number for held in snapshot.held):
            snapshot.merges = BASE
        self._under_way[checkpoint_id] = snapshot
        return snapshot

    def complete(self, checkpoint_id: int) -> None:
        """Step 3: a checkpoint is complete."""
        snapshot = self._under_way.pop(checkpoint_id, None)
        if snapshot is None or snapshot.kind.is_savepoint or snapshot.parts is None:
            return
        # checkpoints before it will not complete any more; savepoints may
        for earlier in [number for number, other in self._under_way.items() if not other.kind.is_savepoint]:
            if earlier < checkpoint_id:
                del self._under_way[earlier]
        if self._chain is not None and snapshot.number < self._chain_number:
            return
        self._chain, self._chain_number = snapshot.parts, snapshot.number
        self._held = [held for held in self._held if held.number > snapshot.number]
        is_tail_needed = snapshot.merges is None and any(self._checkpoints_under_way())
        self._tail = tuple(held for held in snapshot.held if held.frames) if is_tail_needed else ()

    def abort(self, checkpoint_id: int) -> None:
        snapshot = self._under_way.pop(checkpoint_id, None)
        if snapshot is None or not snapshot.found_corrupt or self._chain is None:
            return
        if snapshot.chain == self._chain[: len(snapshot.chain)]:
            # no checkpoint after this one could rely on it either
            self._chain, self._tail = None, ()

    def _ground(self) -> tuple[tuple[KeyedPart, ...], tuple[Held, ...]] | None:
        """Step 4: the files and the held bytes that the state consists of, if they can be relied on."""
        bases = [index for index, held in enumerate(self._held) if held.name == BASE]
        if bases:
            return (), tuple(self._held[bases[-1] :])
        if self._chain is None:
            return None
        length = len(self._chain)
        for snapshot in self._checkpoints_under_way():
            pairs = zip(self._chain[:length], snapshot.kept, strict=False)
            length = next((index for index, (a, b) in enumerate(pairs) if a != b), min(length, len(snapshot.kept)))
        missing = len(self._chain) - length
        if missing > len(self._tail):
            return None
        if not missing and not any(self._checkpoints_under_way()):
            self._tail = ()
        return self._chain[:length], (*self._tail[len(self._tail) - missing :], *self._held)

    def _checkpoints_under_way(self) -> Iterator[HashMapSnapshot]:
        for snapshot in self._under_way.values():
            failed = snapshot.is_over and snapshot.parts is None
            if not snapshot.kind.is_savepoint and not failed:
                yield snapshot

    def _is_savepoint_reading(self) -> bool:
        return any(snapshot.kind.is_savepoint and not snapshot.is_over for snapshot in self._under_way.values())


def _worth_merging(snapshot: HashMapSnapshot) -> str | None:
    deltas = [part.data.length for part in snapshot.chain if part.name == DELTA]
    deltas += [held.length for held in snapshot.held if held.name == DELTA]
    base = sum(part.data.length for part in snapshot.chain if part.name == BASE)
    base += sum(held.length for held in snapshot.held if held.name == BASE)
    if sum(deltas) > max(base, _MIN_BASE):
        return BASE
    if len(deltas) <= _MAX_DELTAS:
        return None
    return DELTA if snapshot.chain else BASE
