"""The ``_metadata`` file of a checkpoint or savepoint: all state of all operators, by handles.

The file is: magic number, format version, length of the body, body (compressed JSON), checksum of the body. Nothing
in it is unpickled, so it can be looked at without the job's classes. Paths beneath the file's own directory, and for a
checkpoint those of its shared files, are relative to it: a savepoint can be moved, and so can a job's directory.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.errors import CorruptStateError, StateIncompatibleError
from firesteel.filesystem.filesystem import checksum, normalize, parent
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import (
    ChannelStateHandle,
    FileSegment,
    InlineBytes,
    KeyedPart,
    KeyedStateHandle,
    OperatorStateHandle,
    OperatorSubtaskState,
    StateBytes,
    StateMeta,
    segments_of,
)

__all__ = ["FORMAT_VERSION", "CheckpointMetadata", "OperatorState"]

FORMAT_VERSION = 2
"""Since version 2 a keyed handle has the encoding of its keys; in version 1 all are in the first encoding."""
_READABLE = (1, FORMAT_VERSION)

_MAGIC = b"FSTEELCP"
_FLINK_MAGIC = b"\x49\x60\x67\x2d"
_HEADER = struct.Struct(">8sIQ")
_CHECKSUM_LENGTH = 16


@dataclass(frozen=True, slots=True)
class OperatorState:
    """The state of one operator, in all its subtasks."""

    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    subtasks: Mapping[int, OperatorSubtaskState] = field(default_factory=dict)
    coordinator: StateBytes | None = None
    """The state of its source's enumerator."""
    finished: frozenset[int] = frozenset()
    """Subtasks that had finished before the barrier."""

    @property
    def size(self) -> int:
        """Bytes of all its state."""
        return sum(state.size for state in self.subtasks.values()) + (
            self.coordinator.length if self.coordinator is not None else 0
        )

    def segments(self) -> Iterator[FileSegment]:
        """Every file segment of the operator."""
        for state in self.subtasks.values():
            yield from segments_of(state)
        if isinstance(self.coordinator, FileSegment):
            yield self.coordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMetadata:
    """A completed checkpoint or savepoint."""

    checkpoint_id: int
    job_id: str
    job_name: str
    timestamp: int
    """When it was triggered, in milliseconds since 1970."""
    kind: SnapshotKind
    operators: tuple[OperatorState, ...] = ()
    channels: tuple[ChannelStateHandle, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, of types that JSON has."""
    version: int = FORMAT_VERSION
    """Of the file it was read from; it is always written in the newest."""

    @property
    def size(self) -> int:
        """Bytes of all state, whether written for this checkpoint or shared with older ones."""
        return sum(operator.size for operator in self.operators) + sum(c.data.length for c in self.channels)

    def segments(self) -> Iterator[FileSegment]:
        """Every file segment the checkpoint needs."""
        for operator in self.operators:
            yield from operator.segments()
        for channel in self.channels:
            if isinstance(channel.data, FileSegment):
                yield channel.data

    def files(self) -> frozenset[str]:
        """The paths of all files the checkpoint needs, besides the metadata."""
        return frozenset(segment.path for segment in self.segments())

    def operator(self, id_or_uid: str) -> OperatorState | None:
        """The state of an operator, by its id or uid."""
        return next((each for each in self.operators if id_or_uid in (each.operator_id, each.uid)), None)

    def to_bytes(self, directory: str) -> bytes:
        """The content of ``_metadata`` in that directory."""
        body = zlib.compress(json.dumps(_Encoder(directory, self.kind).metadata(self), separators=(",", ":")).encode())
        return _HEADER.pack(_MAGIC, FORMAT_VERSION, len(body)) + body + bytes.fromhex(checksum(body))

    @staticmethod
    def from_bytes(data: bytes, directory: str, path: str | None = None) -> CheckpointMetadata:
        """Reads ``_metadata`` of that directory; CorruptStateError or StateIncompatibleError if it is none of ours."""
        path = path or directory
        version, body = _body(data, path)
        try:
            return _Decoder(directory).metadata(json.loads(zlib.decompress(body)), version)
        except (KeyError, IndexError, TypeError, ValueError, zlib.error) as error:
            raise CorruptStateError(
                f"The checkpoint metadata {path} cannot be read: {type(error).__name__}: {error}.", path=path
            ) from error


def _body(data: bytes, path: str) -> tuple[int, bytes]:
    if data[:4] == _FLINK_MAGIC:
        raise StateIncompatibleError(
            f"{path} was written by Apache Flink.",
            hint="Flink's state is in the format of its Java serializers and cannot be restored here.",
        )
    if len(data) < _HEADER.size and _MAGIC.startswith(data[: len(_MAGIC)]):
        raise CorruptStateError(f"The checkpoint metadata {path} is cut off after {len(data)} bytes.", path=path)
    if data[: len(_MAGIC)] != _MAGIC:
        raise CorruptStateError(
            f"{path} is not the metadata of a checkpoint or savepoint: it begins with {data[:8]!r}.", path=path
        )
    _, version, length = _HEADER.unpack_from(data)
    if version not in _READABLE:
        raise StateIncompatibleError(
            f"The checkpoint metadata {path} has format version {version}; this version of Firesteel reads "
            f"{' and '.join(map(str, _READABLE))}.",
            hint="Use the version of Firesteel that wrote it, or a later one.",
        )
    expected = _HEADER.size + length + _CHECKSUM_LENGTH
    if len(data) != expected:
        raise CorruptStateError(
            f"The checkpoint metadata {path} should have {expected} bytes, but has {len(data)}.", path=path
        )
    body = data[_HEADER.size : _HEADER.size + length]
    if bytes.fromhex(checksum(body)) != data[_HEADER.size + length :]:
        raise CorruptStateError(f"The checkpoint metadata {path} was changed: its checksum is wrong.", path=path)
    return version, body


class _Encoder:
    """Handles as lists and dicts that JSON has; the order of a list's elements is part of the format."""

    def __init__(self, directory: str, kind: SnapshotKind):
        directory = normalize(directory)
        self._own = directory + "/"
        # a savepoint is moved alone, a checkpoint with its shared files
        self._job = None if kind.is_savepoint else parent(directory).rstrip("/") + "/"

    def metadata(self, metadata: CheckpointMetadata) -> dict[str, Any]:
        return {
            "checkpoint": metadata.checkpoint_id,
            "job": metadata.job_id,
            "job_name": metadata.job_name,
            "timestamp": metadata.timestamp,
            "kind": metadata.kind.value,
            "operators": [self._operator(operator) for operator in metadata.operators],
            "channels": [self._channel(channel) for channel in metadata.channels],
            "properties": dict(metadata.properties),
        }

    def _operator(self, operator: OperatorState) -> dict[str, Any]:
        return {
            "id": operator.operator_id,
            "uid": operator.uid,
            "name": operator.name,
            "parallelism": operator.parallelism,
            "max_parallelism": operator.max_parallelism,
            "subtasks": [[index, self._subtask(state)] for index, state in operator.subtasks.items()],
            "coordinator": None if operator.coordinator is None else self._data(operator.coordinator),
            "finished": sorted(operator.finished),
        }

    def _subtask(self, state: OperatorSubtaskState) -> dict[str, Any]:
        return {
            "keyed": None if state.keyed is None else self._keyed(state.keyed),
            "operator": [[each.name, each.mode, each.items, self._data(each.data)] for each in state.operator],
            "watermark": state.watermark,
        }

    def _keyed(self, handle: KeyedStateHandle) -> dict[str, Any]:
        return {
            "format": handle.format,
            "key_groups": [handle.key_groups.start, handle.key_groups.end],
            "parts": [
                [part.name, self._data(part.data), None if part.key_groups is None else [*map(list, part.key_groups)]]
                for part in handle.parts
            ],
            "states": [[each.name, each.kind, each.type, each.ttl, each.entries] for each in handle.states],
            "key_encoding": handle.key_encoding,
        }

    def _channel(self, channel: ChannelStateHandle) -> list[Any]:
        return [channel.edge, channel.producer, channel.consumer, channel.at_producer, self._data(channel.data)]

    def _data(self, data: StateBytes) -> Any:
        if isinstance(data, InlineBytes):
            return base64.b64encode(data.data).decode("ascii")
        return [self._path(data.path), data.offset, data.length, data.checksum]

    def _path(self, path: str) -> str:
        if path.startswith(self._own):
            return path[len(self._own) :]
        if self._job is not None and path.startswith(self._job):
            return "../" + path[len(self._job) :]
        return path


class _Decoder:
    """The inverse of :class:`_Encoder`."""

    def __init__(self, directory: str):
        self._own = normalize(directory)
        self._job = parent(self._own)

    def metadata(self, body: dict[str, Any], version: int) -> CheckpointMetadata:
        return CheckpointMetadata(
            checkpoint_id=body["checkpoint"],
            job_id=body["job"],
            job_name=body["job_name"],
            timestamp=body["timestamp"],
            kind=SnapshotKind(body["kind"]),
            operators=tuple(self._operator(each) for each in body["operators"]),
            channels=tuple(self._channel(*each) for each in body["channels"]),
            properties=body["properties"],
            version=version,
        )

    def _operator(self, body: dict[str, Any]) -> OperatorState:
        return OperatorState(
            operator_id=body["id"],
            uid=body["uid"],
            name=body["name"],
            parallelism=body["parallelism"],
            max_parallelism=body["max_parallelism"],
            subtasks={index: self._subtask(state) for index, state in body["subtasks"]},
            coordinator=None if body["coordinator"] is None else self._data(body["coordinator"]),
            finished=frozenset(body["finished"]),
        )

    def _subtask(self, body: dict[str, Any]) -> OperatorSubtaskState:
        return OperatorSubtaskState(
            keyed=None if body["keyed"] is None else self._keyed(body["keyed"]),
            operator=tuple(
                OperatorStateHandle(name, mode, items, self._data(data)) for name, mode, items, data in body["operator"]
            ),
            watermark=body.get("watermark"),
        )

    def _keyed(self, body: dict[str, Any]) -> KeyedStateHandle:
        return KeyedStateHandle(
            format=body["format"],
            key_groups=KeyGroupRange(*body["key_groups"]),
            parts=tuple(
                KeyedPart(name, self._data(data), None if groups is None else tuple((a, b, c) for a, b, c in groups))
                for name, data, groups in body["parts"]
            ),
            states=tuple(StateMeta(*each) for each in body["states"]),
            key_encoding=body.get("key_encoding", 1),
        )

    def _channel(self, edge: str, producer: int, consumer: int, at_producer: bool, data: Any) -> ChannelStateHandle:
        return ChannelStateHandle(edge, producer, consumer, at_producer, self._data(data))

    def _data(self, body: Any) -> StateBytes:
        if isinstance(body, str):
            return InlineBytes(base64.b64decode(body, validate=True))
        path, offset, length, digest = body
        return FileSegment(self._path(path), offset, length, digest)

    def _path(self, path: str) -> str:
        if path.startswith("../"):
            return f"{self._job.rstrip('/')}/{path[3:]}"
        return path if path.startswith("/") or "://" in path else f"{self._own}/{path}"
