from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firesteel.common.errors import CheckpointStorageError, CorruptStateError
from firesteel.process import fault_points
from firesteel.runtime.checkpoint import storage as storage_module
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.checkpoint.storage import (
    CheckpointStorage,
    check_files,
    delete_checkpoint,
    delete_files,
    dispose,
    load,
    resolve,
)
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, SnapshotKind
from firesteel.runtime.model.state_handles import FileSegment, StateBytes
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.checkpoints.handles import checkpoint_of
from tests.support.checkpoints.store import CheckpointStore

JOB = "0123456789abcdef"
BIG = 50_000


@pytest.fixture
def storage(store: CheckpointStore) -> CheckpointStorage:
    return CheckpointStorage(store.base, JOB)


def write(
    storage: CheckpointStorage, checkpoint_id: int, *used: StateBytes, location: CheckpointLocation | None = None
) -> CheckpointMetadata:
    """A completed checkpoint with a file of its own, one to share, and some of earlier ones."""
    place = location or storage.location(checkpoint_id)
    files = SnapshotFiles(place)
    own = files.write(bytes([checkpoint_id]) * BIG, shared=False)
    shared = files.write(bytes([checkpoint_id + 100]) * BIG, shared=True)
    files.finish()
    kind = SnapshotKind.SAVEPOINT if location else SnapshotKind.CHECKPOINT
    metadata = checkpoint_of(own, shared, *used, checkpoint_id=checkpoint_id, kind=kind)
    assert storage.store(place, metadata) == place.exclusive
    return metadata


def shared_of(metadata: CheckpointMetadata) -> FileSegment:
    return next(segment for segment in metadata.segments() if "/shared/" in segment.path)


def contents(metadata: CheckpointMetadata) -> list[bytes]:
    with StateFileReader() as reader:
        return [reader.read(segment)[:1] for segment in metadata.segments()]


def test_the_layout_is_flinks(storage: CheckpointStorage, store: CheckpointStore) -> None:
    write(storage, 3)
    names = [name.split("/") for name in store.files()]
    assert {tuple(name[:2]) for name in names} == {(JOB, "chk-3"), (JOB, "shared")}
    assert f"{JOB}/chk-3/_metadata" in store.files()
    place = storage.savepoint_location(store.path("savepoints"))
    assert place.exclusive == place.shared
    prefix = store.path("savepoints", "savepoint-012345-")
    assert place.exclusive.startswith(prefix)
    assert len(place.exclusive) == len(prefix) + 12
    assert storage.savepoint_location(store.path("savepoints")) != place


def test_a_checkpoint_is_found_by_directory_by_file_and_by_job(
    storage: CheckpointStorage, store: CheckpointStore
) -> None:
    metadata = {number: write(storage, number) for number in (2, 10, 9)}
    directory = store.path(JOB, "chk-9")
    assert load(directory) == load(directory + "/") == load(directory + "/_metadata") == metadata[9]
    assert load(store.path(JOB)) == metadata[10], "the newest by number, not by name"
    assert storage.load(directory) == metadata[9]
    assert resolve(store.path(JOB)) == store.path(JOB, "chk-10")
    assert storage.completed() == [store.path(JOB, f"chk-{n}") for n in (2, 9, 10)]


def test_what_has_no_metadata_is_no_checkpoint(storage: CheckpointStorage, store: CheckpointStore) -> None:
    metadata = write(storage, 1)
    files = SnapshotFiles(storage.location(2))
    files.write(b"x" * BIG, shared=False)
    files.finish()
    store.filesystem.write(store.path(JOB, "chk-x", "_metadata"), [b"nonsense"])
    assert load(store.path(JOB)) == metadata
    assert storage.completed() == [store.path(JOB, "chk-1")]
    assert storage.highest_checkpoint_id() == 2
    with pytest.raises(CheckpointStorageError, match="no checkpoint or savepoint in") as raised:
        load(store.path(JOB, "chk-2"))
    assert raised.value.path == store.path(JOB, "chk-2")


def test_a_path_without_a_checkpoint_says_what_is_there(store: CheckpointStore) -> None:
    with pytest.raises(CheckpointStorageError, match="empty or missing") as raised:
        load(store.path("nowhere"))
    assert "_metadata" in (raised.value.hint or "")
    store.filesystem.write(store.path("somewhere", "data.csv"), [b"x"])
    with pytest.raises(CheckpointStorageError, match=r"it holds data\.csv"):
        load(store.path("somewhere"))


def test_a_damaged_metadata_file_is_refused_by_path(storage: CheckpointStorage, store: CheckpointStore) -> None:
    write(storage, 1)
    path = store.path(JOB, "chk-1", "_metadata")
    store.damage(path, keep=40)
    with pytest.raises(CorruptStateError) as raised:
        load(store.path(JOB))
    assert raised.value.path == path


def test_a_checkpoint_is_complete_only_once(storage: CheckpointStorage) -> None:
    metadata = write(storage, 1)
    with pytest.raises(CheckpointStorageError, match="exists"):
        storage.store(storage.location(1), checkpoint_of(checkpoint_id=99))
    assert load(storage.location(1).exclusive) == metadata


def test_metadata_that_cannot_be_written_leaves_no_checkpoint(
    storage: CheckpointStorage, store: CheckpointStore, faults: StorageFaults
) -> None:
    write(storage, 1)
    faults.set("full write in _metadata")
    with pytest.raises(CheckpointStorageError, match="No space left"):
        storage.store(storage.location(2), checkpoint_of())
    faults.clear()
    assert storage.completed() == [store.path(JOB, "chk-1")]
    assert not [name for name in store.files() if "chk-2" in name]


def test_a_crash_before_the_metadata_leaves_no_checkpoint(storage: CheckpointStorage) -> None:
    fault_points.arm("storage.write=raise")
    try:
        with pytest.raises(CheckpointStorageError, match="fault injected"):
            storage.store(storage.location(1), checkpoint_of())
    finally:
        fault_points.arm("")
    assert storage.completed() == []


def test_a_savepoint_can_be_moved(tmp_path: Path) -> None:
    storage = CheckpointStorage(str(tmp_path / "checkpoints"), JOB)
    place = storage.savepoint_location(f"file://{tmp_path}/savepoints")
    write(storage, 4, location=place)
    shutil.move(place.exclusive, tmp_path / "moved")
    moved = load(str(tmp_path / "moved"))
    check_files(moved)
    assert contents(moved) == [bytes([4]), bytes([104])]


def test_a_job_directory_can_be_moved(tmp_path: Path) -> None:
    storage = CheckpointStorage(str(tmp_path / "checkpoints"), JOB)
    first = write(storage, 1)
    write(storage, 2, shared_of(first))
    shutil.move(storage.job_directory, tmp_path / "moved")
    moved = load(str(tmp_path / "moved"))
    check_files(moved)
    assert contents(moved) == [bytes([2]), bytes([102]), bytes([101])]


def test_missing_and_short_files_are_found_without_reading(storage: CheckpointStorage, store: CheckpointStore) -> None:
    metadata = write(storage, 1)
    check_files(metadata)
    path = shared_of(metadata).path
    store.damage(path, keep=BIG - 1)
    with pytest.raises(CorruptStateError, match=f"at least {BIG} bytes, but has {BIG - 1}") as raised:
        check_files(metadata)
    assert raised.value.path == path
    store.filesystem.delete(path)
    with pytest.raises(CorruptStateError, match="is missing") as raised:
        storage.check_files(metadata)
    assert raised.value.path == path


# ---- deleting ---------------------------------------------------------------------------------------


def test_deleting_a_checkpoint_leaves_what_is_shared(storage: CheckpointStorage, store: CheckpointStore) -> None:
    metadata = write(storage, 1)
    delete_checkpoint(storage.location(1).exclusive)
    delete_checkpoint(storage.location(1).exclusive)
    assert store.files() == [shared_of(metadata).path[len(store.base) + 1 :]]
    delete_files([shared_of(metadata).path])
    storage.remove_if_empty()
    assert store.filesystem.list(store.base) == []


def test_the_metadata_is_deleted_first(
    storage: CheckpointStorage, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(storage, 1)

    def fail(self: object, directory: str) -> None:
        raise CheckpointStorageError("later", path=directory)

    monkeypatch.setattr(type(store.filesystem), "delete_tree", fail)
    with pytest.raises(CheckpointStorageError, match="later"):
        delete_checkpoint(storage.location(1).exclusive)
    assert storage.completed() == []


def test_many_files_are_deleted(store: CheckpointStore) -> None:
    paths = [store.path("dir", str(number)) for number in range(12)]
    for path in paths:
        store.filesystem.write(path, [b"x"])
    delete_files(iter(paths[:-1]))
    assert store.files() == ["dir/11"]


def test_disposing_of_a_savepoint_leaves_nothing(storage: CheckpointStorage, store: CheckpointStore) -> None:
    place = storage.savepoint_location(store.path("savepoints"))
    write(storage, 1, location=place)
    other = write(storage, 2)
    dispose(place.exclusive)
    assert store.filesystem.list(store.path("savepoints")) == []
    check_files(other)
    with pytest.raises(CheckpointStorageError, match="no checkpoint or savepoint"):
        dispose(place.exclusive)


def test_disposing_of_a_checkpoint_leaves_what_others_need(storage: CheckpointStorage, store: CheckpointStore) -> None:
    first = write(storage, 1)
    second = write(storage, 2, shared_of(first))
    dispose(storage.location(1).exclusive)
    check_files(second)
    assert contents(second) == [bytes([2]), bytes([102]), bytes([101])]
    storage.dispose(storage.job_directory)
    assert store.files() == []
    assert store.filesystem.list(store.base) == []


def test_what_is_no_savepoint_is_not_disposed_of(store: CheckpointStore) -> None:
    store.filesystem.write(store.path("mine", "_metadata"), [b"my own notes on metadata"])
    store.filesystem.write(store.path("mine", "data"), [b"x"])
    with pytest.raises(CorruptStateError):
        dispose(store.path("mine"))
    assert store.files() == ["mine/_metadata", "mine/data"]


def test_what_dead_attempts_left_is_removed(storage: CheckpointStorage, store: CheckpointStore) -> None:
    kept = write(storage, 1)
    for number in (2, 3):
        dead = SnapshotFiles(storage.location(number))
        dead.write(b"x" * BIG, shared=False)
        dead.write(b"x" * BIG, shared=True)
        dead.finish()
    store.filesystem.write(store.path(JOB, "shared", ".x.inprogress"), [b"x"])
    removed = storage.remove_unreferenced(kept.files())
    assert len(removed) == 5
    assert len(store.files()) == 3
    assert "chk-2" not in store.filesystem.list(storage.job_directory)
    check_files(kept)
    assert storage.completed() == [storage.location(1).exclusive]
    assert storage.remove_unreferenced(kept.files()) == []


def test_a_checkpoint_that_could_not_be_deleted_goes_with_the_next_cleaning(
    storage: CheckpointStorage, store: CheckpointStore
) -> None:
    first = write(storage, 1)
    second = write(storage, 2, own_of(first))
    storage.remove_unreferenced(second.files(), [storage.location(2).exclusive])
    assert storage.completed() == [storage.location(2).exclusive]
    check_files(second)
    storage.remove_unreferenced([], [])
    assert store.files() == []


def test_a_checkpoint_whose_metadata_is_out_of_sight_is_no_incomplete_one(
    storage: CheckpointStorage, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = write(storage, 1)
    before = store.files()
    with monkeypatch.context() as patch:
        patch.setattr(type(store.filesystem), "exists", lambda _filesystem, _path: False)
        assert storage.remove_unreferenced(kept.files(), [storage.location(1).exclusive]) == []
    assert store.files() == before


def own_of(metadata: CheckpointMetadata) -> FileSegment:
    return next(segment for segment in metadata.segments() if "/shared/" not in segment.path)


def test_files_of_a_deleted_checkpoint_stay_while_others_need_them(
    storage: CheckpointStorage, store: CheckpointStore
) -> None:
    first = write(storage, 1)
    second = write(storage, 2, own_of(first))
    delete_checkpoint(storage.location(1).exclusive, whole=False)
    assert storage.completed() == [storage.location(2).exclusive]
    assert storage.remove_unreferenced(second.files()) == [shared_of(first).path]
    check_files(second)
    dispose(storage.location(2).exclusive)
    assert store.files() == []


def test_disposing_leaves_files_of_its_own_that_others_need(storage: CheckpointStorage, store: CheckpointStore) -> None:
    first = write(storage, 1)
    second = write(storage, 2, own_of(first))
    dispose(storage.location(1).exclusive)
    check_files(second)
    assert [own_of(first).path] == [store.path(name) for name in store.files() if name.startswith(f"{JOB}/chk-1/")]


def test_all_of_a_job_is_deleted(storage: CheckpointStorage, store: CheckpointStore) -> None:
    write(storage, 1)
    other = CheckpointStorage(store.base, "another")
    kept = write(other, 1)
    storage.delete_all()
    assert {name.split("/")[0] for name in store.files()} == {"another"}
    check_files(kept)


# ---- the directory itself ---------------------------------------------------------------------------


def test_a_writable_directory_is_created_and_left_clean(storage: CheckpointStorage, store: CheckpointStore) -> None:
    storage.check_writable()
    assert store.files() == []


def test_a_directory_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    storage = CheckpointStorage(str(tmp_path / "file" / "checkpoints"), JOB)
    with pytest.raises(CheckpointStorageError, match="Not a directory") as raised:
        storage.check_writable()
    assert raised.value.path is not None
    assert raised.value.path.startswith(str(tmp_path / "file"))


def test_storage_that_loses_bytes_is_not_accepted(storage: CheckpointStorage, faults: StorageFaults) -> None:
    faults.set("truncate read")
    with pytest.raises(CheckpointStorageError, match="does not return"):
        storage.check_writable()


def test_a_slot_tells_whether_it_sees_the_same_directory(storage: CheckpointStorage, store: CheckpointStore) -> None:
    token = storage.probe_token()
    CheckpointStorage(store.base, JOB).check_token(token)
    with pytest.raises(CheckpointStorageError, match="not the same here") as raised:
        CheckpointStorage(store.path("other"), JOB).check_token(token)
    assert raised.value.path == store.path("other")
    assert "all hosts share" in (raised.value.hint or "")
    storage.remove_token(token)
    assert store.files() == []


def test_a_slot_that_may_only_read_says_so(storage: CheckpointStorage, faults: StorageFaults) -> None:
    token = storage.probe_token()
    faults.set("fail write")
    with pytest.raises(CheckpointStorageError, match="Cannot write"):
        storage.check_token(token)


def test_the_functions_are_found_on_the_storage_too() -> None:
    for name in ("load", "check_files", "delete_files", "delete_checkpoint", "dispose"):
        assert getattr(CheckpointStorage, name) is getattr(storage_module, name)
