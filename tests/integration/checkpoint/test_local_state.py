from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.checkpoint.local_state import LocalStateStore, default_root
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.state_handles import FileSegment
from tests.support.checkpoints.store import CheckpointStore

BIG = 50_000


def place(store: CheckpointStore, checkpoint_id: int) -> CheckpointLocation:
    return CheckpointLocation(store.path("job", f"chk-{checkpoint_id}"), store.path("job", "shared"))


def snapshot(
    store: CheckpointStore, local: LocalStateStore, checkpoint_id: int, *used: FileSegment
) -> list[FileSegment]:
    """A checkpoint with a segment of a merged file and an uploaded file; both differ with the number."""
    files = SnapshotFiles(place(store, checkpoint_id), local_state=local)
    written = files.write(bytes([checkpoint_id]) * BIG, shared=True)
    source = local.directory.parent.parent / "upload"
    source.write_bytes(bytes([checkpoint_id]) * 2_000_000)
    segments = [written, files.upload(source, shared=True)]
    source.unlink()
    assert all(isinstance(segment, FileSegment) for segment in segments)
    files.finish([*segments, *used])  # type: ignore[list-item]
    return segments  # type: ignore[return-value]


@pytest.fixture
def local(tmp_path: Path):
    found = LocalStateStore("job", tmp_path / "local")
    yield found
    found.delete()


def copies(local: LocalStateStore) -> dict[str, int]:
    return {path.name: len(list(path.iterdir())) for path in sorted(local.directory.iterdir()) if path.name != ".lock"}


def test_a_local_copy_makes_the_download_unnecessary(
    store: CheckpointStore, local: LocalStateStore, tmp_path: Path
) -> None:
    segments = snapshot(store, local, 1)
    store.filesystem.delete_tree(store.base)
    with StateFileReader(local) as reader:
        assert [reader.read(segment)[:2] for segment in segments] == [b"\1\1"] * 2
        with reader.open(segments[1]) as file:
            assert file.read() == b"\1" * 2_000_000
        reader.download_all((segment, tmp_path / str(segment.length)) for segment in segments)
    assert (tmp_path / str(BIG)).read_bytes() == b"\1" * BIG


def test_another_process_of_the_host_finds_the_copies(store: CheckpointStore, local: LocalStateStore) -> None:
    segments = snapshot(store, local, 1)
    other = LocalStateStore("job", local.directory.parent)
    assert [other.find(segment) for segment in segments] == [local.find(segment) for segment in segments]
    assert None not in [other.find(segment) for segment in segments]
    other.close()


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"x" + data[1:], lambda data: b""])
def test_a_damaged_copy_is_not_trusted(
    store: CheckpointStore, local: LocalStateStore, damage, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    segments = snapshot(store, local, 1)
    for segment in segments:
        path = local.find(segment)
        assert path is not None
        path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING), StateFileReader(local) as reader:
        assert reader.read(segments[0]) == b"\1" * BIG
        reader.download(segments[1], tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"\1" * 2_000_000
    assert caplog.text.count("is not used") == 2
    assert [local.find(segment) for segment in segments] == [None, None]


def test_a_downloaded_file_is_linked_where_possible(
    store: CheckpointStore, local: LocalStateStore, tmp_path: Path
) -> None:
    segments = snapshot(store, local, 1)
    with StateFileReader(local) as reader:
        reader.download(segments[1], tmp_path / "target")
    found = local.find(segments[1])
    assert found is not None
    assert found.samefile(tmp_path / "target")


def test_a_completed_checkpoint_prunes_those_before(store: CheckpointStore, local: LocalStateStore) -> None:
    first = snapshot(store, local, 1)
    second = snapshot(store, local, 2, *first[:1])
    assert copies(local) == {"chk-1": 2, "chk-2": 3}
    local.confirm(2)
    assert copies(local) == {"chk-2": 3}
    assert [local.find(segment) is not None for segment in (*first, *second)] == [True, False, True, True]
    third = snapshot(store, local, 3, *first[:1])
    local.confirm(3)
    assert copies(local) == {"chk-3": 3}
    with StateFileReader(local) as reader:
        assert reader.read(first[0]) == b"\1" * BIG, "still in use, two checkpoints later"
    assert local.find(third[0]) is not None


def test_a_discarded_snapshot_leaves_no_copies(store: CheckpointStore, local: LocalStateStore) -> None:
    first = snapshot(store, local, 1)
    files = SnapshotFiles(place(store, 2), local_state=local)
    files.write(b"x" * BIG, shared=True)
    stream = files.write_stream(shared=True)
    stream.write(b"y" * BIG)
    files.discard()
    stream._copy.abort()
    assert copies(local) == {"chk-1": 2}
    assert local.find(first[0]) is not None


def test_an_unfinished_stream_leaves_no_copy(store: CheckpointStore, local: LocalStateStore) -> None:
    files = SnapshotFiles(place(store, 1), local_state=local)
    with files.write_stream(shared=True) as stream:
        stream.write(b"y" * BIG)
    files.finish()
    assert copies(local) == {"chk-1": 0}


def test_no_copies_of_savepoints_and_of_inline_state(store: CheckpointStore, local: LocalStateStore) -> None:
    directory = store.path("savepoint-1")
    files = SnapshotFiles(CheckpointLocation(directory, directory), local_state=local)
    files.write(b"x" * BIG, shared=True)
    files.finish()
    files = SnapshotFiles(place(store, 1), local_state=local)
    files.write(b"x", shared=True)
    files.finish()
    assert sum(copies(local).values()) == 0


def test_a_disk_without_room_for_copies_fails_nothing(
    store: CheckpointStore, local: LocalStateStore, caplog: pytest.LogCaptureFixture
) -> None:
    (local.directory / "chk-1").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        segments = snapshot(store, local, 1)
    assert "No local copy" in caplog.text
    with StateFileReader(local) as reader:
        assert reader.read(segments[0]) == b"\1" * BIG


def test_copies_end_with_the_job(store: CheckpointStore, local: LocalStateStore) -> None:
    snapshot(store, local, 1)
    other = LocalStateStore("other", local.directory.parent)
    local.delete()
    assert [path.name for path in other.directory.parent.iterdir()] == ["other"]
    other.delete()
    assert not other.directory.parent.exists()


def age(store: LocalStateStore, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(store.directory / ".lock", (moment, moment))


def test_what_dead_jobs_left_is_removed(tmp_path: Path) -> None:
    dead, resting, alive = (LocalStateStore(name, tmp_path / "root") for name in ("dead", "resting", "alive"))
    for each in (dead, resting, alive):
        (each.directory / "chk-1").mkdir()
    dead.close()
    resting.close()
    age(dead, 100)
    age(alive, 100)
    new = LocalStateStore("new", tmp_path / "root", stale_after_s=50)
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["alive", "new", "resting"]
    for each in (new, alive):
        each.close()


def test_the_copies_of_a_killed_process_are_stale(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from firesteel.runtime.checkpoint.local_state import LocalStateStore\n"
        f"store = LocalStateStore('killed', {str(tmp_path)!r})\n"
        "os.utime(store.directory / '.lock', (0, 0))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False, timeout=180)
    assert done.returncode == -9
    assert (tmp_path / "killed").exists()
    new = LocalStateStore("new", tmp_path)
    assert not (tmp_path / "killed").exists()
    new.close()


def test_copies_of_a_restarted_job_are_found_again(store: CheckpointStore, tmp_path: Path) -> None:
    first = LocalStateStore("job", tmp_path / "local")
    segments = snapshot(store, first, 1)
    first.close()
    assert first.find(segments[0]) is None, "closed"
    second = LocalStateStore("job", tmp_path / "local")
    assert second.find(segments[0]) is not None
    second.delete()


def test_a_directory_that_others_may_write_to_is_not_used(
    store: CheckpointStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with caplog.at_level(logging.WARNING):
        local = LocalStateStore("job", tmp_path / "open")
    assert "No local copies" in caplog.text
    assert not local.is_usable
    segments = snapshot(store, local, 1)
    local.confirm(1)
    local.abort(1)
    with StateFileReader(local) as reader:
        assert reader.read(segments[0]) == b"\1" * BIG
    local.delete()
    assert list((tmp_path / "open").iterdir()) == []


def test_the_default_directory_is_this_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    local = LocalStateStore("job")
    assert local.directory == default_root() / "job" == tmp_path / f"firesteel-local-state-{os.getuid()}" / "job"
    assert local.directory.parent.stat().st_mode & 0o777 == 0o700
    local.delete()
