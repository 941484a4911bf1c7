from __future__ import annotations

import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firesteel.common.errors import CheckpointStorageError
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import configure_filesystems, get_filesystem
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.checkpoints.store import CheckpointStore

ROOT = Path(__file__).parents[3]


def test_storage_works_until_told_otherwise(store: CheckpointStore, faults: StorageFaults) -> None:
    store.filesystem.write(store.path("a"), [b"x"])
    faults.set("fail write")
    with pytest.raises(CheckpointStorageError, match="Input/output error"):
        store.filesystem.write(store.path("b"), [b"x"])
    with pytest.raises(CheckpointStorageError, match="Input/output error"):
        store.filesystem.create_once(store.path("b"), b"x")
    assert store.filesystem.read(store.path("a")) == b"x"
    faults.set("fail read delete")
    for operation in (store.filesystem.read, store.filesystem.delete, store.filesystem.delete_tree):
        with pytest.raises(CheckpointStorageError, match="Input/output error"):
            operation(store.path("a"))
    faults.clear()
    assert store.files() == ["a"]


def test_a_fault_that_begins_in_the_middle_of_a_file(store: CheckpointStore, faults: StorageFaults) -> None:
    writer = store.filesystem.create(store.path("a"))
    writer.write(b"x")
    faults.set("full")
    with pytest.raises(CheckpointStorageError, match="No space left"):
        writer.write(b"x")
    writer.abort()
    faults.clear()
    assert store.files() == []


def test_a_fault_happens_once_and_only_in_some_paths(store: CheckpointStore, faults: StorageFaults) -> None:
    faults.set("fail write in shared once")
    store.filesystem.write(store.path("chk-1", "a"), [b"x"])
    with pytest.raises(CheckpointStorageError):
        store.filesystem.write(store.path("shared", "a"), [b"x"])
    store.filesystem.write(store.path("shared", "a"), [b"x"])
    assert store.files() == ["chk-1/a", "shared/a"]


def test_files_lose_their_end(store: CheckpointStore, faults: StorageFaults) -> None:
    faults.set("truncate write")
    store.filesystem.write(store.path("a"), [b"12345678", b"abcdefgh"])
    store.filesystem.create_once(store.path("b"), b"12345678")
    faults.set("truncate read")
    assert store.filesystem.read(store.path("a")) == b"123456"
    assert store.filesystem.size(store.path("b")) == 2
    faults.clear()
    assert store.filesystem.read(store.path("a")) == b"12345678abcd"
    assert store.filesystem.read(store.path("b")) == b"1234"


def test_a_slow_store_takes_its_time(store: CheckpointStore, faults: StorageFaults) -> None:
    store.filesystem.write(store.path("a"), [b"x"])
    faults.set("slow:0.2 read")
    started = time.monotonic()
    assert store.filesystem.read(store.path("a")) == b"x"
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize("fault", ["explode", "fail everything", "slow:soon"])
def test_a_fault_that_is_none_is_refused(faults: StorageFaults, fault: str) -> None:
    with pytest.raises(ValueError):
        faults.set(fault)


def test_a_configuration_makes_storage_faulty(tmp_path: Path) -> None:
    faults = pickle.loads(pickle.dumps(StorageFaults(tmp_path / "faults")))
    path = str(tmp_path / "file")
    configure_filesystems(Configuration.from_dict(dict([faults.setting])))
    try:
        faults.set("fail write")
        with pytest.raises(CheckpointStorageError, match="Input/output error"):
            get_filesystem(path).write(path, [b"x"])
    finally:
        configure_filesystems(Configuration())
    get_filesystem(path).write(path, [b"x"])


def test_an_environment_variable_makes_storage_faulty_in_another_process(tmp_path: Path) -> None:
    faults = StorageFaults(tmp_path / "faults")
    path = str(tmp_path / "file")
    code = f"from firesteel.filesystem.stores import *; get_filesystem({path!r}).write({path!r}, [b'x'])"

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), **faults.environment},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    faults.set("full")
    assert "No space left on device" in run().stderr
    assert not Path(path).exists()
    faults.clear()
    done = run()
    assert done.returncode == 0, done.stderr
    assert Path(path).read_bytes() == b"x"
