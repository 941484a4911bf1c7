"""What only the RocksDB backend has: rows, options, shared memory, local directories, files that are linked."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocksdict import DbClosedError

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.common import Configuration
from firesteel.common.errors import CheckpointError, FiresteelError, StateIncompatibleError
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow
from firesteel.config.option import InvalidConfigurationError
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.checkpoint.local_state import LocalStateStore
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.model.state_handles import FileSegment
from firesteel.runtime.state.factory import create_keyed_backend
from firesteel.runtime.state.rocksdb import RocksDBKeyedStateBackend, RocksDBOptions, classes
from firesteel.runtime.state.rocksdb import options as rocksdb_options
from firesteel.runtime.state.rocksdb.database import Database
from firesteel.runtime.state.rocksdb.directories import OwnedDirectory, remove_leftovers
from firesteel.runtime.state.rocksdb.keys import (
    KeyEncoder,
    decode_object,
    encode_namespace,
    encode_object,
    is_told_by_bytes,
    split_row,
)
from firesteel.runtime.state.rocksdb.value_encoding import loads, originals_of, trailer_of
from firesteel.testing import FakeClock, eventually
from tests.support.state.keyed_backends import Workbench
from tests.support.state.memory_files import MemorySnapshotFiles

MAX = 16
VALUE = ValueStateDescriptor("value")


@pytest.fixture
def bench() -> Iterator[Workbench]:
    bench = Workbench("rocksdb", MAX, FakeClock(0))
    yield bench
    bench.close()


@pytest.fixture
def backend(bench: Workbench) -> Any:
    return bench.backend()


# ---- rows -------------------------------------------------------------------------------------------

simple = st.one_of(
    st.integers(),
    st.text(max_size=9),
    st.binary(max_size=9),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.uuids(),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.builds(TimeWindow, st.integers(), st.integers()),
    st.builds(CountWindow, st.integers()),
    st.just(GlobalWindow()),
)
objects = st.recursive(
    simple,
    lambda inner: st.one_of(st.tuples(inner), st.tuples(inner, inner), st.frozensets(inner, max_size=3)),
    max_leaves=8,
)


@given(first=objects, second=objects)
def test_bytes_are_equal_exactly_if_the_objects_are(first: Any, second: Any) -> None:
    assert (encode_object(first) == encode_object(second)) == (first == second)


@given(value=objects)
def test_bytes_tell_the_object_or_say_that_they_do_not(value: Any) -> None:
    if is_told_by_bytes(value):
        found = decode_object(encode_object(value))
        assert found == value
        assert type(found) is type(value)
        assert repr(found) == repr(value)


keys = objects.filter(lambda value: value is not None and "Window" not in repr(value))


@given(key=keys, namespace=objects, rest=st.binary(max_size=5))
def test_a_row_comes_apart_as_it_was_put_together(key: Any, namespace: Any, rest: bytes) -> None:
    row = KeyEncoder(MAX).prefix_of(key) + encode_namespace(namespace) + rest
    assert int.from_bytes(row[:2], "big") == key_group_of(key, MAX)
    found_key, found_namespace, found_rest = split_row(row)
    assert found_key == encode_object(key)
    assert found_namespace == (b"" if namespace is None else encode_object(namespace))
    assert found_rest == rest


def test_long_keys_and_namespaces() -> None:
    for length in (253, 254, 255, 256, 70_000):
        row = KeyEncoder(MAX).prefix_of("k" * length) + encode_namespace("n" * length)
        assert split_row(row) == (b"s" + b"k" * length, b"s" + b"n" * length, b"")


def test_a_user_class_is_a_map_key_like_in_a_dictionary(backend: Any) -> None:
    backend.key = "a"
    state = backend.get_state(MapStateDescriptor("map"))
    part, same = f"{1}.0", f"1.{0}"
    assert part is not same
    state.put(Version(part, part), "one")
    state.put(Version(part, same), "uno")
    assert list(state.values()) == ["uno"]
    assert list(state.keys()) == [Version("1.0", "1.0")]


class Version:
    def __init__(self, *parts: str):
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


def test_originals_stand_behind_the_pickle() -> None:
    import pickle

    data = pickle.dumps({"a": 1}, 5)
    assert originals_of(data) is None
    assert originals_of(data + trailer_of((True, None))) == (True, None)
    assert loads(data + trailer_of((True, None))) == {"a": 1}


def test_what_cannot_be_pickled_is_named_when_it_is_stored(backend: Any) -> None:
    backend.key = "a"
    with pytest.raises(CheckpointError, match=r"type lock .* state 'value' for key 'a'"):
        backend.get_state(VALUE).update(threading.Lock())


def test_values_are_not_the_objects_that_were_stored(backend: Any) -> None:
    backend.key = "a"
    state = backend.get_state(VALUE)
    given = [1]
    state.update(given)
    given.append(2)
    state.value().append(3)
    assert state.value() == [1]


# ---- files ------------------------------------------------------------------------------------------


def sst_files(handle: Any) -> dict[str, Any]:
    return {part.name: part.data for part in handle.parts if part.name.endswith(".sst")}


def test_an_unchanged_database_uploads_no_file_again(bench: Workbench, backend: Any) -> None:
    state = backend.get_state(VALUE)
    for key in range(1000):
        backend.key = key
        state.update(key)
    first = bench.snapshot(backend)
    backend.notify_checkpoint_complete(bench.number)
    files = MemorySnapshotFiles(bench.store)
    second = backend.snapshot(bench.number + 1, SnapshotKind.CHECKPOINT).write(files)
    assert sst_files(second) == sst_files(first) != {}
    assert files.bytes_written < 5_000, "only the manifest"
    assert all("/shared/" in segment.path for segment in sst_files(first).values())
    assert {part.name.split("-")[0] for part in first.parts} - set(sst_files(first)) == {"CURRENT", "MANIFEST"}


@pytest.mark.parametrize("kind", list(SnapshotKind))
def test_nothing_is_left_in_the_directory(bench: Workbench, backend: Any, kind: SnapshotKind) -> None:
    (directory,) = bench.directory.iterdir()
    backend.key = 1
    backend.get_state(VALUE).update(1)
    bench.snapshot(backend, kind)
    backend.snapshot(99, kind).discard()
    handle = bench.snapshot(backend, kind)
    assert {path.name for path in directory.iterdir()} == {"db", "owner"}
    backend.close()
    assert list(bench.directory.iterdir()) == []
    restored = bench.restore([handle])
    (directory,) = bench.directory.iterdir()
    assert {path.name for path in directory.iterdir()} == {"db", "owner"}
    restored.close()
    assert list(bench.directory.iterdir()) == []


@pytest.mark.parametrize("kind", list(SnapshotKind))
def test_a_snapshot_can_be_written_after_the_backend_was_closed(
    bench: Workbench, backend: Any, kind: SnapshotKind
) -> None:
    state = backend.get_state(VALUE)
    for key in range(2000):
        backend.key = key
        state.update("x" * 100)
    pending = backend.snapshot(1, kind)
    state.update("later")
    backend.close()
    backend.close()
    handle = bench.write(pending)
    assert list(bench.directory.iterdir()) == []
    assert {stored for _, _, stored in bench.restore([handle]).entries("value")} == {"x" * 100}


def test_a_snapshot_whose_upload_fails_leaves_no_links(bench: Workbench, backend: Any) -> None:
    class Full(MemorySnapshotFiles):
        def upload(self, local: Path, *, shared: bool) -> FileSegment:
            raise OSError("no space left on device")

    backend.key = 1
    backend.get_state(VALUE).update(1)
    pending = backend.snapshot(1, SnapshotKind.CHECKPOINT)
    with pytest.raises(OSError, match="no space"):
        pending.write(Full(bench.store))
    pending.discard()
    (directory,) = bench.directory.iterdir()
    assert {path.name for path in directory.iterdir()} == {"db", "owner"}


def test_a_closed_backend_says_so(backend: Any) -> None:
    backend.key = 1
    state = backend.get_state(VALUE)
    backend.close()
    with pytest.raises(DbClosedError):
        state.value()
    with pytest.raises(FiresteelError, match="closed"):
        backend.get_state(ValueStateDescriptor("other"))


def test_state_is_restored_before_it_is_asked_for(bench: Workbench, backend: Any) -> None:
    backend.get_state(VALUE)
    reader: Any = None
    with pytest.raises(AssertionError, match="restored before"):
        backend.restore([], reader, reusable=True)


def test_a_class_that_went_missing_is_said(bench: Workbench, backend: Any) -> None:
    backend.key = "a"
    backend.get_state(ListStateDescriptor("list")).add(Version("1"))
    handle = bench.snapshot(backend, SnapshotKind.SAVEPOINT)
    (part,) = handle.parts
    assert isinstance(part.data, FileSegment)
    restored = bench.restore([handle])
    hidden = globals().pop("Version")
    try:
        with pytest.raises(StateIncompatibleError, match="Version"):
            list(restored.entries("list"))
    finally:
        globals()["Version"] = hidden


def test_values_name_the_classes_that_only_the_job_defines(bench: Workbench, backend: Any) -> None:
    from dataclasses import make_dataclass

    Local = make_dataclass("Local", ["x", "y"], frozen=True)
    Local.__module__ = "a_script"
    state = backend.get_state(VALUE)
    in_map = backend.get_state(MapStateDescriptor("map"))
    for number in range(100):
        backend.key = Local(number, "key")
        state.update(Local(number, "value"))
        in_map.put(Local(number, "map key"), Local(number, "map value"))
    stored = backend._opened.tables["value"].get(backend.encoder.prefix_of(backend.key) + b"\0")
    assert len(stored) < 300, "not with its definition"
    handles = [bench.snapshot(backend, kind) for kind in SnapshotKind]
    parts = [bench.restore([handles[0]], groups) for groups in (KeyGroupRange(0, 7), KeyGroupRange(8, 15))]
    for handle in [*handles, [bench.snapshot(part) for part in parts]]:
        # as in another process
        classes._known.clear()
        classes._names.clear()
        restored = bench.restore(handle if isinstance(handle, list) else [handle])  # type: ignore[list-item]
        found = {(key.x, value.x, value.y) for _, key, value in restored.entries("value")}
        assert found == {(number, number, "value") for number in range(100)}
        restored.key = Local(7, "key")
        assert restored.get_state(VALUE).value() == Local(7, "value")
        assert restored.get_state(MapStateDescriptor("map")).get(Local(7, "map key")) == Local(7, "map value")


def test_checkpoints_in_the_checkpoint_storage_and_local_copies_of_them(
    bench: Workbench, backend: Any, tmp_path: Path
) -> None:
    store = LocalStateStore("job", tmp_path / "local")
    state = backend.get_state(VALUE)
    handle = None
    for number in range(1, 5):
        for key in range(0, 20_000, number):
            backend.key = key
            state.update((number, os.urandom(20)))
        location = CheckpointLocation(str(tmp_path / "job" / f"chk-{number}"), str(tmp_path / "job" / "shared"))
        files = SnapshotFiles(location, local_state=store)
        handle = backend.snapshot(number, SnapshotKind.CHECKPOINT).write(files)
        files.finish(segment for segment in (part.data for part in handle.parts) if isinstance(segment, FileSegment))
        backend.notify_checkpoint_complete(number)
    assert handle is not None
    expected = sorted(backend.entries("value"), key=lambda entry: entry[1])
    for local in (store, None):
        for groups in (bench.all_groups, KeyGroupRange(3, 9)):
            reader = StateFileReader(local)
            restored = bench.backend(groups)
            restored.restore([handle], reader, reusable=True)
            reader.close()
            found = sorted(restored.entries("value"), key=lambda entry: entry[1])
            assert found == [entry for entry in expected if key_group_of(entry[1], MAX) in groups]
            restored.key = found[0][1]
            restored.get_state(VALUE).update("changed")
            bench.snapshot(restored)
    store.close()


def test_many_timers_do_not_wait_for_a_snapshot(bench: Workbench, backend: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("firesteel.runtime.state.rocksdb.timers._MAX_CHANGES", 10)
    queue = backend.timer_queue("t/event")
    for number in range(95):
        queue.add(number, number % 7, TimeWindow(0, 5))
    table = backend._opened.tables["_timers/t/event"]
    assert len(list(table.scan(b"", b"\xff"))) == 90
    for _ in range(42):
        queue.pop_due(1000)
    assert len(list(table.scan(b"", b"\xff"))) == 55
    queue.remove(94, 94 % 7, TimeWindow(0, 5))
    restored = bench.restore([bench.snapshot(backend)]).timer_queue("t/event")
    assert restored.timers() == queue.timers()
    assert len(restored) == 52


# ---- directories ------------------------------------------------------------------------------------


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from firesteel.runtime.state.rocksdb.directories import OwnedDirectory\n"
        "path = OwnedDirectory(Path(sys.argv[1]), 'op').path; (path / 'db').mkdir(); (path / 'db' / 'x').touch()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, cwd=Path(__file__).parents[3])
    (left,) = tmp_path.iterdir()
    mine = OwnedDirectory(tmp_path, "op")
    (tmp_path / "of-another-program").mkdir()
    assert remove_leftovers(tmp_path) == [left]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["of-another-program", mine.path.name])
    mine.release()


def test_a_directory_without_owner_is_removed_only_when_it_is_old(tmp_path: Path) -> None:
    orphan = tmp_path / "firesteel-rocksdb-x-1-abc"
    orphan.mkdir()
    assert remove_leftovers(tmp_path) == []
    os.utime(orphan, (0, 0))
    assert remove_leftovers(tmp_path) == [orphan]
    assert remove_leftovers(tmp_path / "missing") == []


# ---- options ----------------------------------------------------------------------------------------


def test_options_are_those_of_flink() -> None:
    assert RocksDBOptions.from_configuration(Configuration()) == RocksDBOptions()
    configured = RocksDBOptions.from_configuration(
        Configuration.from_dict(
            {
                "state.backend.rocksdb.memory.fixed-per-slot": "64 mb",
                "state.backend.rocksdb.memory.write-buffer-ratio": "0.25",
                "state.backend.rocksdb.predefined-options": "SPINNING_DISK_OPTIMIZED_HIGH_MEM",
                "state.backend.rocksdb.writebuffer.size": "8 mb",
                "state.backend.rocksdb.thread.num": "3",
                "state.backend.rocksdb.compression.per.level": "NO_COMPRESSION;LZ4_COMPRESSION",
                "state.backend.rocksdb.use-bloom-filter": "true",
                "state.backend.rocksdb.bloom-filter.bits-per-key": "12.0",
            }
        )
    )
    assert configured.total_memory == 64 << 20
    assert configured.write_buffer_ratio == 0.25
    assert configured.write_buffer_size == 8 << 20, "set, so not the predefined one"
    assert configured.block_size == 128 << 10, "predefined"
    assert configured.compaction_style == "LEVEL"
    assert configured.background_threads == 3
    assert configured.compression == ("NO_COMPRESSION", "LZ4_COMPRESSION")
    assert configured.bloom_filter_bits == 12
    unmanaged = Configuration.from_dict({"state.backend.rocksdb.memory.managed": "false"})
    assert RocksDBOptions.from_configuration(unmanaged).total_memory is None
    wrong = Configuration.from_dict({"state.backend.rocksdb.predefined-options": "FASTEST"})
    with pytest.raises(InvalidConfigurationError, match="predefined-options"):
        RocksDBOptions.from_configuration(wrong)


@pytest.mark.parametrize(
    "options",
    [
        RocksDBOptions(total_memory=None, block_cache_size=1 << 20, write_buffer_size=1 << 20, write_buffer_count=3),
        RocksDBOptions(compression=("NO_COMPRESSION",), bloom_filter_bits=10, compaction_style="LEVEL"),
        RocksDBOptions(
            compression=("LZ4_COMPRESSION", "ZSTD_COMPRESSION"), max_open_files=50, target_file_size=1 << 20
        ),
        RocksDBOptions.from_configuration(
            Configuration.from_dict(
                {"state.backend.rocksdb.predefined-options": "SPINNING_DISK_OPTIMIZED_HIGH_MEM"},
            )
        ),
    ],
    ids=["own memory", "filters", "levels", "predefined"],
)
def test_a_database_works_with_any_options(bench: Workbench, options: RocksDBOptions) -> None:
    backend = RocksDBKeyedStateBackend(bench.all_groups, MAX, bench.clock, directory=bench.directory, options=options)
    state = backend.get_state(VALUE)
    for key in range(100):
        backend.key = key
        state.update(key)
    handle = bench.snapshot(backend)
    backend.close()
    # whoever restores it may have set other options
    restored = bench.restore([handle])
    assert len(list(restored.keys("value"))) == 100


def test_databases_of_a_process_share_one_memory() -> None:
    options = RocksDBOptions(total_memory=48 << 20)
    first = rocksdb_options._shared_memory(options.total_memory or 0, options.write_buffer_ratio)
    assert rocksdb_options._shared_memory(48 << 20, 0.5) is first
    assert first.write_buffers.get_buffer_size() == 16 << 20


def test_state_larger_than_the_write_buffers(bench: Workbench) -> None:
    options = RocksDBOptions(total_memory=4 << 20)
    backend = RocksDBKeyedStateBackend(bench.all_groups, MAX, bench.clock, directory=bench.directory, options=options)
    state = backend.get_state(VALUE)
    for key in range(20_000):
        backend.key = key
        state.update(os.urandom(500))
    memory = rocksdb_options._shared_memory(4 << 20, 0.5)
    # a busy machine may be behind with writing them out
    eventually(lambda: memory.write_buffers.get_usage() < 6 << 20)
    assert len(list(backend.keys("value"))) == 20_000
    backend.close()


def test_the_factory_makes_it_as_configured(tmp_path: Path) -> None:
    configuration = Configuration.from_dict({"state.backend.type": "rocksdb"})
    made: dict[str, Any] = {"operator_id": "0123456789abcdef0123", "subtask": 2}
    backend = create_keyed_backend(
        configuration, KeyGroupRange(0, 7), 8, FakeClock(0), working_directory=tmp_path / "work", **made
    )
    assert isinstance(backend, RocksDBKeyedStateBackend)
    (path,) = (tmp_path / "work").iterdir()
    assert path.name.startswith("firesteel-rocksdb-0123456789abcdef-2-")
    backend.close()
    configuration.set_string("state.backend.rocksdb.localdir", str(tmp_path / "configured"))
    backend = create_keyed_backend(
        configuration, KeyGroupRange(0, 7), 8, FakeClock(0), working_directory=tmp_path / "work", **made
    )
    assert len(list((tmp_path / "configured").iterdir())) == 1
    backend.close()
    assert list((tmp_path / "configured").iterdir()) == []


def test_nobody_else_can_look_into_a_directory(tmp_path: Path) -> None:
    mine = OwnedDirectory(tmp_path, "op")
    try:
        assert mine.path.stat().st_mode & 0o077 == 0
    finally:
        mine.release()


# ---- snapshots that fail ----------------------------------------------------------------------------


def test_lists_lose_nothing_if_their_numbers_could_not_be_noted_at_first(
    bench: Workbench, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a number that was given before, a restored backend would write over an element."""
    descriptor = ListStateDescriptor("list")
    backend.key = "a"
    backend.get_state(descriptor).add(1)

    def full(_database: Database, _number: int) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Database, "sequence", property(Database.sequence.fget, full))  # type: ignore[attr-defined]
        with pytest.raises(OSError, match="No space left"):
            bench.snapshot(backend)
    backend.get_state(descriptor).add(2)
    restored = bench.restore([bench.snapshot(backend)])
    restored.key = "a"
    state = restored.get_state(descriptor)
    state.add_all([3, 4, 5])
    assert list(state.get()) == [1, 2, 3, 4, 5]
