from __future__ import annotations

import json
import pickle
import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.errors import CorruptStateError, FiresteelError, StateIncompatibleError
from firesteel.filesystem.filesystem import checksum
from firesteel.runtime.checkpoint.metadata import FORMAT_VERSION, CheckpointMetadata, OperatorState
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KEY_ENCODING, KeyGroupRange
from firesteel.runtime.model.state_handles import FileSegment, InlineBytes, KeyedStateHandle, OperatorSubtaskState
from tests.support.checkpoints.handles import checkpoint_of, metadata

DIRECTORY = "/base/job/chk-7"


@given(metadata=metadata(DIRECTORY))
def test_what_is_stored_is_what_is_loaded(metadata: CheckpointMetadata) -> None:
    data = metadata.to_bytes(DIRECTORY)
    assert CheckpointMetadata.from_bytes(data, DIRECTORY) == metadata
    assert CheckpointMetadata.from_bytes(data, DIRECTORY).size == metadata.size
    assert pickle.loads(pickle.dumps(metadata)) == metadata


@given(metadata=metadata(DIRECTORY), other=st.sampled_from(["/moved/x/chk-7", "s3://bucket/deep/er/x/chk-7"]))
def test_what_is_moved_together_is_found_together(metadata: CheckpointMetadata, other: str) -> None:
    moved = CheckpointMetadata.from_bytes(metadata.to_bytes(DIRECTORY), other)

    def expected(path: str) -> str:
        if path.startswith(DIRECTORY + "/"):
            return other + path[len(DIRECTORY) :]
        if path.startswith("/base/job/") and not metadata.kind.is_savepoint:
            return other.rpartition("/")[0] + path[len("/base/job") :]
        return path

    assert [segment.path for segment in moved.segments()] == [expected(s.path) for s in metadata.segments()]


@given(metadata=metadata(DIRECTORY), data=st.data())
def test_no_damage_goes_unnoticed(metadata: CheckpointMetadata, data: st.DataObject) -> None:
    content = bytearray(metadata.to_bytes(DIRECTORY))
    if data.draw(st.booleans(), "cut"):
        del content[data.draw(st.integers(0, len(content) - 1), "length") :]
    else:
        content[data.draw(st.integers(0, len(content) - 1), "at")] ^= data.draw(st.integers(1, 255), "bits")
    with pytest.raises((CorruptStateError, StateIncompatibleError)):
        CheckpointMetadata.from_bytes(bytes(content), DIRECTORY)


def read(data: bytes) -> FiresteelError:
    with pytest.raises(FiresteelError) as raised:
        CheckpointMetadata.from_bytes(data, DIRECTORY, DIRECTORY + "/_metadata")
    assert DIRECTORY + "/_metadata" in raised.value.message
    return raised.value


def test_another_version_is_refused_by_number() -> None:
    data = bytearray(checkpoint_of().to_bytes(DIRECTORY))
    struct.pack_into(">I", data, 8, FORMAT_VERSION + 1)
    error = read(bytes(data))
    assert isinstance(error, StateIncompatibleError)
    assert f"version {FORMAT_VERSION + 1}" in error.message
    assert error.hint is not None


def test_what_version_1_wrote_is_read_and_known_by_its_key_encoding() -> None:
    keyed = KeyedStateHandle("hashmap", KeyGroupRange(0, 127), ())
    state = OperatorState("op-1", "my-uid", "Map", 1, 128, {0: OperatorSubtaskState(keyed)})
    data = checkpoint_of(operators=(state,)).to_bytes(DIRECTORY)
    header = struct.calcsize(">8sIQ")
    body = json.loads(zlib.decompress(data[header:-16]))
    assert body["operators"][0]["subtasks"][0][1]["keyed"].pop("key_encoding") == KEY_ENCODING
    old = zlib.compress(json.dumps(body).encode())
    data = struct.pack(">8sIQ", data[:8], 1, len(old)) + old + bytes.fromhex(checksum(old))
    read_keyed = CheckpointMetadata.from_bytes(data, DIRECTORY).operators[0].subtasks[0].keyed
    assert read_keyed == replace(keyed, key_encoding=1)


def test_a_savepoint_of_flink_is_recognised() -> None:
    error = read(struct.pack(">Ii", 0x4960672D, 6) + b"\0" * 100)
    assert isinstance(error, StateIncompatibleError)
    assert "Apache Flink" in error.message


@pytest.mark.parametrize("data", [b"PK\x03\x04 something else entirely", b"hello", b"\x80\x05."])
def test_a_foreign_file_is_recognised(data: bytes) -> None:
    error = read(data)
    assert isinstance(error, CorruptStateError)
    assert "not the metadata" in error.message
    assert error.path == DIRECTORY + "/_metadata"


@pytest.mark.parametrize("keep", [0, 1, 8, 19])
def test_a_cut_off_header_is_said(keep: int) -> None:
    error = read(checkpoint_of().to_bytes(DIRECTORY)[:keep])
    assert isinstance(error, CorruptStateError)
    assert f"cut off after {keep} bytes" in error.message


def test_a_cut_off_body_says_what_was_expected() -> None:
    data = checkpoint_of().to_bytes(DIRECTORY)
    error = read(data[:-5])
    assert isinstance(error, CorruptStateError)
    assert f"should have {len(data)} bytes, but has {len(data) - 5}" in error.message
    assert isinstance(read(data + b"x"), CorruptStateError)


def test_a_savepoint_keeps_paths_of_others_absolute() -> None:
    neighbour = FileSegment("/sp/savepoint-b/state", 0, 1, "00")
    own = FileSegment("/sp/savepoint-a/state", 0, 1, "00")
    saved = checkpoint_of(own, neighbour, kind=SnapshotKind.SAVEPOINT)
    moved = CheckpointMetadata.from_bytes(saved.to_bytes("/sp/savepoint-a"), "s3://new/place")
    assert sorted(moved.files()) == ["/sp/savepoint-b/state", "s3://new/place/state"]


def test_a_checkpoint_sees_what_it_holds() -> None:
    segment = FileSegment("/base/job/shared/x", 5, 100, "00")
    found = checkpoint_of(segment, segment, InlineBytes(b"abc"))
    assert found.size == 203
    assert found.files() == {"/base/job/shared/x"}
    operator = found.operator("my-uid")
    assert operator is found.operator("op-1") is not None
    assert found.operator("nobody") is None
