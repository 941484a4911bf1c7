"""The record format of keyed state files."""

from __future__ import annotations

import sys
import threading
import types

import pytest

from firesteel.common.errors import CheckpointError, CorruptStateError, StateIncompatibleError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.model.key_groups import key_group_of
from firesteel.runtime.model.state_handles import FileSegment, InlineBytes
from firesteel.runtime.state.api.chunks import (
    CHUNK_ENTRIES,
    CanonicalWriter,
    Chunk,
    decode_chunks,
    encode_chunk,
    encode_chunks,
    is_timer_table,
    key_groups_of,
    read_canonical,
    read_part,
    timer_table,
)
from tests.support.state.memory_files import MemorySnapshotFiles, MemoryStateFileReader, MemoryStore


def test_a_chunk_comes_back() -> None:
    window = TimeWindow(0, 10)
    data = encode_chunk("s", window, ["a", "b"], [1, [2, 3]]) + encode_chunk("t", None, ["c"], None)
    assert list(decode_chunks(data)) == [Chunk("s", window, ["a", "b"], [1, [2, 3]]), Chunk("t", None, ["c"], None)]


def test_chunks_are_small() -> None:
    keys = list(range(10 * CHUNK_ENTRIES))
    chunks = list(decode_chunks(b"".join(encode_chunks("s", None, keys, keys))))
    assert [key for chunk in chunks for key in chunk.keys or ()] == keys
    assert max(len(chunk.keys or ()) for chunk in chunks) == CHUNK_ENTRIES
    large = list(encode_chunks("s", None, list(range(2000)), [bytes([n % 251]) * 10_000 for n in range(2000)]))
    assert max(map(len, large)) < 4_000_000
    assert len(large) > 50


@pytest.mark.parametrize("cut", [1, 3, 10, -1])
def test_a_file_that_is_cut_off_is_noticed(cut: int) -> None:
    data = encode_chunk("s", None, ["a"], [1])
    with pytest.raises(CorruptStateError):
        list(decode_chunks(data[:cut]))


def test_what_cannot_be_pickled_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"State 'locks'.* of type lock for key 'b'"):
        encode_chunk("locks", None, ["a", "b"], [1, threading.Lock()])


def test_a_class_that_went_missing_is_said() -> None:
    data = encode_chunk("s", None, ["a"], [Chunk("x", None, [], [])])
    with pytest.raises(StateIncompatibleError, match="AttributeError"):
        list(decode_chunks(data.replace(b"Chunk", b"Chonk")))


def test_classes_of_a_script_keep_their_identity() -> None:
    def script() -> type:
        class Key:
            def __init__(self, name: str):
                self.name = name

            def __eq__(self, other: object) -> bool:
                return type(other) is type(self)

            def __hash__(self) -> int:
                return hash(self.name)

        return Key

    import cloudpickle

    of_first_run = cloudpickle.loads(cloudpickle.dumps(script()))
    data = encode_chunk("s", None, [of_first_run("a")], [1])
    (chunk,) = decode_chunks(data)
    assert chunk.keys is not None
    assert type(chunk.keys[0]) is of_first_run


def test_classes_pickled_by_name_are_found_among_those_that_came_by_value() -> None:
    import cloudpickle

    module = types.ModuleType("script_of_another_process")
    exec("class Key(tuple): pass", module.__dict__)
    sys.modules[module.__name__] = module
    try:
        data = encode_chunk("s", None, [module.Key("a")], [1])
        cloudpickle.register_pickle_by_value(module)
        by_value = cloudpickle.dumps(module.Key)
        cloudpickle.unregister_pickle_by_value(module)
    finally:
        del sys.modules[module.__name__]
    brought = cloudpickle.loads(by_value)
    (chunk,) = decode_chunks(data)
    assert chunk.keys is not None
    assert type(chunk.keys[0]) is brought


def test_a_timer_belongs_to_the_group_of_its_key() -> None:
    table = timer_table("user-timers/event")
    assert is_timer_table(table)
    assert not is_timer_table("timers")
    assert key_groups_of(table, [(5, "a", None), (9, "b", None)], 128) == [
        key_group_of("a", 128),
        key_group_of("b", 128),
    ]
    assert key_groups_of("s", [1, "a", (1, 2)], 16) == [key_group_of(key, 16) for key in (1, "a", (1, 2))]


@pytest.mark.parametrize("entries", [3, 50_000])
def test_canonical_parts_are_read_by_key_group(entries: int) -> None:
    store = MemoryStore()
    writer = CanonicalWriter(MemorySnapshotFiles(store, inline_threshold=1000))
    for group in (1, 4, 7):
        for number in range(entries):
            writer.add(group, "s", None, (group, number), number)
            if number % 2:
                writer.add(group, "t", 5, (group, number), [number])
    part = writer.finish()
    assert part is not None
    assert part.key_groups is not None
    assert isinstance(part.data, InlineBytes if entries == 3 else FileSegment)
    assert [entry[0] for entry in part.key_groups] == [1, 4, 7]
    found = list(read_canonical(part, MemoryStateFileReader(store), [4, 5]))
    assert {group for group, _ in found} == {4}
    keys = [key for _, chunk in found if chunk.table == "s" for key in chunk.keys or ()]
    assert keys == [(4, number) for number in range(entries)]
    in_all = [chunk for _, chunk in read_canonical(part, MemoryStateFileReader(store))]
    assert in_all == list(read_part(part, MemoryStateFileReader(store)))
    assert sum(len(chunk.keys or ()) for chunk in in_all) == 3 * (entries + entries // 2)


def test_an_empty_canonical_part_is_none() -> None:
    assert CanonicalWriter(MemorySnapshotFiles(MemoryStore())).finish() is None


def test_key_groups_must_ascend() -> None:
    writer = CanonicalWriter(MemorySnapshotFiles(MemoryStore()))
    writer.add(5, "s", None, "a", 1)
    with pytest.raises(ValueError, match="key group 4"):
        writer.add(4, "s", None, "b", 1)
