from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from firesteel.common.errors import CheckpointStorageError
from firesteel.filesystem.filesystem import checksum, join, new_checksum, normalize, parent, scheme_of
from firesteel.filesystem.local_filesystem import LocalFileSystem
from firesteel.filesystem.stores import current_stores, get_filesystem
from firesteel.process import fault_points
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.checkpoints.store import CheckpointStore


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/checkpoints", "/data/checkpoints"),
        ("/data/checkpoints/", "/data/checkpoints"),
        ("file:///data/checkpoints/", "/data/checkpoints"),
        ("file:/data/checkpoints", "/data/checkpoints"),
        ("FILE:///data", "/data"),
        ("//data//x/../y", "/data/y"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("S3://Bucket/a", "s3://Bucket/a"),
    ],
)
def test_paths_are_normalized(path: str, expected: str) -> None:
    assert normalize(path) == expected
    assert normalize(expected) == expected


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalize("checkpoints") == str(tmp_path / "checkpoints")


def test_parts_of_paths() -> None:
    assert join("s3://bucket/a/", "b", "c") == "s3://bucket/a/b/c"
    assert parent("s3://bucket/a/b") == "s3://bucket/a"
    assert parent("/a") == "/"
    assert scheme_of("s3a://x/y") == "s3a"


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 1000])
def test_a_checksum_of_pieces_is_that_of_the_whole(data: bytes) -> None:
    digest = new_checksum()
    for start in range(0, len(data), 1000):
        digest.update(data[start : start + 1000])
    assert digest.digest().hex() == checksum(data) == checksum(memoryview(data))
    assert checksum(data) != checksum(data + b"\0")


def test_files_come_back_as_they_were_written(store: CheckpointStore) -> None:
    path = store.path("a", "b", "file")
    store.filesystem.write(path, [b"hello ", b"", b"world"])
    assert store.filesystem.read(path) == b"hello world"
    assert store.filesystem.read(path, 6) == b"world"
    assert store.filesystem.read(path, 4, 3) == b"o w"
    assert store.filesystem.read(path, 9, 100) == b"ld"
    assert store.filesystem.read(path, 3, 0) == b""
    assert store.filesystem.size(path) == 11
    assert store.filesystem.exists(path)
    assert not store.filesystem.exists(parent(path))
    assert not store.filesystem.exists(path + "x")


def test_reading_beyond_the_end_gives_nothing(store: CheckpointStore) -> None:
    path = store.path("file")
    store.filesystem.write(path, [b"12345"])
    assert list(store.filesystem.read_chunks(path, 5, 10)) == []
    assert b"".join(store.filesystem.read_chunks(path, 2, 10)) == b"345"


def test_an_empty_file_is_a_file(store: CheckpointStore) -> None:
    path = store.path("empty")
    store.filesystem.write(path, [])
    assert store.filesystem.exists(path)
    assert store.filesystem.size(path) == 0
    assert store.filesystem.read(path) == b""


def test_a_long_file_is_read_in_pieces(store: CheckpointStore) -> None:
    data = os.urandom(1 << 20) * 18  # more than one part of an upload, more than one request
    path = store.path("long")
    store.filesystem.write(path, [data[:100], data[100 : 9 << 20], data[9 << 20 :]])
    chunks = list(store.filesystem.read_chunks(path, 1000, len(data) - 2000))
    assert len(chunks) > 10
    assert b"".join(chunks) == data[1000:-1000]


def test_local_files_are_uploaded_and_downloaded(store: CheckpointStore, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(3_000_000))
    store.filesystem.upload(source, store.path("x", "copy"))
    store.filesystem.download(store.path("x", "copy"), target)
    assert target.read_bytes() == source.read_bytes()


def test_a_file_exists_only_once_it_is_closed(store: CheckpointStore) -> None:
    writer = store.filesystem.create(store.path("dir", "file"))
    writer.write(b"x" * 100_000)
    assert not store.filesystem.exists(store.path("dir", "file"))
    writer.close()
    writer.close()
    assert store.files() == ["dir/file"]
    writer.abort()
    assert store.files() == ["dir/file"]


@pytest.mark.parametrize("size", [10, 10 << 20])
def test_nothing_is_left_of_a_file_that_was_given_up(store: CheckpointStore, size: int) -> None:
    writer = store.filesystem.create(store.path("dir", "file"))
    writer.write(b"x" * size)
    writer.abort()
    writer.abort()
    del writer
    assert store.files() == []


def test_nothing_is_left_of_a_file_whose_source_failed(store: CheckpointStore) -> None:
    def chunks():
        yield b"x" * 1000
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.filesystem.write(store.path("file"), chunks())
    assert store.files() == []


def test_a_file_is_created_only_once(store: CheckpointStore) -> None:
    path = store.path("dir", "_metadata")
    store.filesystem.create_once(path, b"first")
    with pytest.raises(CheckpointStorageError, match="exists") as raised:
        store.filesystem.create_once(path, b"second")
    assert raised.value.path == path
    assert store.filesystem.read(path) == b"first"
    assert store.files() == ["dir/_metadata"]


def test_a_missing_file_is_missing(store: CheckpointStore) -> None:
    with pytest.raises(FileNotFoundError):
        store.filesystem.read(store.path("missing"))
    with pytest.raises(FileNotFoundError):
        store.filesystem.size(store.path("missing"))
    with pytest.raises(FileNotFoundError):
        list(store.filesystem.read_chunks(store.path("missing"), 0, 10))


def test_deleting_what_is_missing_is_fine(store: CheckpointStore) -> None:
    store.filesystem.delete(store.path("missing"))
    store.filesystem.delete_tree(store.path("missing"))
    store.filesystem.delete_empty(store.path("missing"))


def test_a_tree_is_deleted_and_nothing_else(store: CheckpointStore) -> None:
    for name in ("chk-1/a", "chk-1/b/c", "chk-1/b/d/e", "chk-10/a", "chk-1x"):
        store.filesystem.write(store.path(*name.split("/")), [b"x"])
    store.filesystem.delete_tree(store.path("chk-1"))
    assert store.files() == ["chk-10/a", "chk-1x"]
    assert store.filesystem.list(store.base) == ["chk-10", "chk-1x"]


def test_a_directory_is_listed_by_names(store: CheckpointStore) -> None:
    assert store.filesystem.list(store.path("nothing")) == []
    for name in ("chk-2/x", "shared/y", "_z"):
        store.filesystem.write(store.path(*name.split("/")), [b"x"])
    assert store.filesystem.list(store.base) == ["_z", "chk-2", "shared"]


def test_only_an_empty_directory_is_deleted_as_empty(store: CheckpointStore) -> None:
    store.filesystem.write(store.path("dir", "file"), [b"x"])
    store.filesystem.delete_empty(store.path("dir"))
    assert store.files() == ["dir/file"]
    store.filesystem.delete(store.path("dir", "file"))
    store.filesystem.delete_empty(store.path("dir"))
    assert store.filesystem.list(store.base) == []


def test_many_threads_use_one_file_system(store: CheckpointStore) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for round in range(3):
                path = store.path("dir", f"{number}-{round}")
                store.filesystem.write(path, [bytes([number]) * 50_000])
                assert store.filesystem.read(path) == bytes([number]) * 50_000
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=current_stores().bind(work), args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(store.files()) == 18


def test_a_writer_survives_that_another_deletes_the_empty_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = LocalFileSystem()
    path = tmp_path / "chk-1" / "state"
    real = Path.mkdir
    made: list[Path] = []

    def mkdir(self: Path, *args: object, **settings: object) -> None:
        real(self, *args, **settings)
        made.append(self)
        if made.count(path.parent) <= 3:
            filesystem.delete_empty(str(path.parent))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    filesystem.write(str(path), [b"x"])
    assert made.count(path.parent) == 4
    assert path.read_bytes() == b"x"


def test_a_file_under_construction_is_durable_and_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    directory = tmp_path / "job" / "chk-1"
    writer = LocalFileSystem().create(str(directory / "state"))
    before = len(synced)
    for _ in range(100):
        writer.write(b"x" * 10_000)
    assert len(synced) == before, "chunks are not synced one by one"
    assert [path.name for path in directory.iterdir()] == [Path(writer._temporary).name]  # type: ignore[attr-defined]
    writer.close()
    file, last = synced[before:]
    assert file.startswith(str(directory / ".state."))
    assert last == str(directory)
    assert str(tmp_path / "job") in synced, "a new directory is an entry of the one above"
    assert [path.name for path in directory.iterdir()] == ["state"]


def test_a_part_of_the_path_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    path = str(tmp_path / "file" / "chk-1" / "state")
    with pytest.raises(CheckpointStorageError, match="Not a directory") as raised:
        get_filesystem(path).write(path, [b"x"])
    assert raised.value.path == path
    assert raised.value.hint == "A part of the path is a file, not a directory."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_missing_permission_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    path = str(tmp_path / "state")
    with pytest.raises(CheckpointStorageError, match="Permission denied") as raised:
        get_filesystem(path).write(path, [b"x"])
    assert "user that runs the job" in str(raised.value)


def test_a_full_disk_is_said_and_leaves_nothing(store: CheckpointStore, faults: StorageFaults) -> None:
    path = store.path("state")
    faults.set("full")
    with pytest.raises(CheckpointStorageError, match="No space left") as raised:
        store.filesystem.write(path, [b"x"])
    assert raised.value.path == path
    assert "free space" in str(raised.value)
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.__cause__.errno == errno.ENOSPC
    faults.clear()
    assert store.files() == []


def test_a_limit_on_the_length_of_files_is_said(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    import signal

    path = str(tmp_path / "state")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(CheckpointStorageError, match="too large") as raised:
            get_filesystem(path).write(path, [b"x" * 60_000] * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert raised.value.path == path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("operation", ["write", "read", "delete"])
def test_storage_has_fault_points(store: CheckpointStore, operation: str) -> None:
    path = store.path("state")
    store.filesystem.write(path, [b"x"])
    fault_points.arm(f"storage.{operation}=raise")
    try:
        with pytest.raises(CheckpointStorageError, match=f"fault injected at storage.{operation}") as raised:
            {
                "write": lambda: store.filesystem.write(path + "2", [b"x"]),
                "read": lambda: store.filesystem.read(path),
                "delete": lambda: store.filesystem.delete(path),
            }[operation]()
    finally:
        fault_points.arm("")
    assert raised.value.path is not None
    assert raised.value.path.startswith(path)
    assert store.files() == ["state"]


def test_an_unknown_scheme_is_said() -> None:
    with pytest.raises(CheckpointStorageError, match="no file system for nonsense://"):
        get_filesystem("nonsense://host/path")
