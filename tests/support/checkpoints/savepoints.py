"""Makes savepoints by hand: state by state, in the canonical format, without any job."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firesteel.api.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.config.configuration import Configuration
from firesteel.graph.operator_id import operator_id_from_uid
from firesteel.runtime.checkpoint.files import SnapshotFiles
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of, subtask_of
from firesteel.runtime.model.state_handles import (
    CANONICAL,
    ChannelStateHandle,
    InlineBytes,
    KeyedStateHandle,
    OperatorStateHandle,
    OperatorSubtaskState,
    StateMeta,
)
from firesteel.runtime.state.api.chunks import CanonicalWriter
from firesteel.runtime.state.factory import create_keyed_backend

JOB_ID = "0123456789abcdef0123456789abcdef"


@dataclass
class Keyed:
    """A keyed state: stored values by key, or by (key, namespace) where there are namespaces."""

    meta: StateMeta
    values: Mapping[Any, Any] = field(default_factory=dict)
    namespaces: bool = False

    def entries(self) -> Iterable[tuple[Any, Any, Any]]:
        for key, value in self.values.items():
            yield (*key, value) if self.namespaces else (key, None, value)


@dataclass
class Timers:
    """A timer queue: (timestamp, key, namespace), in the order of registration."""

    queue: str
    timers: Sequence[tuple[int, Any, Any]]

    @property
    def meta(self) -> StateMeta:
        return StateMeta(f"_timers/{self.queue}", "timers", entries=len(self.timers))

    def entries(self) -> Iterable[tuple[Any, Any, Any]]:
        for number, timer in enumerate(self.timers, 1):
            yield timer, None, number


@dataclass
class Operator:
    """An operator of a savepoint that is to be written."""

    name: str
    uid: str | None = None
    keyed: Sequence[Keyed | Timers] = ()
    lists: Mapping[str, tuple[str, Sequence[Sequence[Any]]]] = field(default_factory=dict)
    """By name: the mode, and the items of each subtask."""
    coordinator: bytes | None = None
    parallelism: int = 2
    max_parallelism: int = 128
    operator_id: str | None = None


def write_savepoint(
    directory: Path | str,
    operators: Sequence[Operator],
    *,
    kind: SnapshotKind = SnapshotKind.SAVEPOINT,
    job_name: str = "orders",
    inline_threshold: int = 100,
    channels: tuple[ChannelStateHandle, ...] = (),
) -> str:
    """Writes a savepoint into a directory and returns its path."""
    location = CheckpointLocation(str(directory), str(directory))
    metadata = CheckpointMetadata(
        checkpoint_id=7,
        job_id=JOB_ID,
        job_name=job_name,
        timestamp=1_790_000_000_000,
        kind=kind,
        operators=tuple(_operator(operator, location, inline_threshold) for operator in operators),
        channels=channels,
    )
    return CheckpointStorage(str(directory), JOB_ID).store(location, metadata)


def backend_operator(backend_name: str, kind: SnapshotKind, directory: Path) -> OperatorState:
    """An operator whose state a real backend wrote: 100 values, a map, and a timer."""
    backend = create_keyed_backend(
        Configuration().set_string("state.backend.type", backend_name),
        KeyGroupRange(0, 127),
        128,
        lambda: 0,
        operator_id="0" * 32,
        subtask=0,
        working_directory=directory / "work",
    )
    try:
        value = backend.get_state(ValueStateDescriptor("value"))
        entries = backend.get_state(MapStateDescriptor("map"))
        for key in range(100):
            backend.key = key
            value.update(-key)
        backend.key = 1
        entries.put("a", 1)
        entries.put("b", 2)
        backend.timer_queue("user-timers/event").add(50, 1, None)
        location = CheckpointLocation(str(directory / "chk"), str(directory / "chk"))
        files = SnapshotFiles(location, inline_threshold=0)
        handle: KeyedStateHandle = backend.snapshot(1, kind).write(files)
        files.finish()
    finally:
        backend.close()
    return OperatorState("0" * 32, "native", "Native", 1, 128, {0: OperatorSubtaskState(handle)})


def write_metadata(directory: Path, operators: Sequence[OperatorState], kind: SnapshotKind) -> str:
    """Writes the metadata of operators whose state is written already, and returns the path."""
    metadata = CheckpointMetadata(
        checkpoint_id=7, job_id=JOB_ID, job_name="orders", timestamp=0, kind=kind, operators=tuple(operators)
    )
    return CheckpointStorage(str(directory), JOB_ID).store(CheckpointLocation(str(directory), str(directory)), metadata)


def _operator(operator: Operator, location: CheckpointLocation, inline_threshold: int) -> OperatorState:
    subtasks = {}
    for subtask in range(operator.parallelism):
        files = SnapshotFiles(location, inline_threshold=inline_threshold)
        keyed = _keyed(operator, subtask, files) if operator.keyed else None
        lists = tuple(
            _list(name, mode, items[subtask], files)
            for name, (mode, items) in operator.lists.items()
            if subtask < len(items)
        )
        files.finish()
        if keyed is not None or lists:
            subtasks[subtask] = OperatorSubtaskState(keyed, lists)
    uid = operator.uid
    return OperatorState(
        operator_id=operator.operator_id or operator_id_from_uid(uid or operator.name),
        uid=uid,
        name=operator.name,
        parallelism=operator.parallelism,
        max_parallelism=operator.max_parallelism,
        subtasks=subtasks,
        coordinator=None if operator.coordinator is None else InlineBytes(operator.coordinator),
    )


def _keyed(operator: Operator, subtask: int, files: SnapshotFiles) -> KeyedStateHandle:
    most, parallelism = operator.max_parallelism, operator.parallelism
    entries, states = [], []
    for state in operator.keyed:
        mine = []
        for key, namespace, value in state.entries():
            group = key_group_of(key[1] if isinstance(state, Timers) else key, most)
            if subtask_of(group, most, parallelism) == subtask:
                mine.append((group, state.meta.name, namespace, key, value))
        entries += mine
        meta = state.meta
        states.append(StateMeta(meta.name, meta.kind, meta.type, meta.ttl, len(mine)))
    writer = CanonicalWriter(files)
    for entry in sorted(entries, key=lambda entry: entry[0]):
        writer.add(*entry)
    part = writer.finish()
    key_groups = KeyGroupRange.of(subtask, most, parallelism)
    return KeyedStateHandle(CANONICAL, key_groups, () if part is None else (part,), tuple(states))


def _list(name: str, mode: str, items: Sequence[Any], files: SnapshotFiles) -> OperatorStateHandle:
    data = files.write(pickle.dumps([pickle.dumps(item) for item in items]), shared=False)
    return OperatorStateHandle(name, mode, len(items), data)
