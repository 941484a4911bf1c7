"""Each job reaches object stores with its own settings, whatever else runs in the process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.filesystem import local_filesystem
from firesteel.filesystem.filesystem import FileSystem
from firesteel.filesystem.stores import Stores, configure_filesystems, current_stores, registered_scheme
from firesteel.testing.in_process import InProcessExecutor


class Spying(local_filesystem.LocalFileSystem):
    """Files on the local disk, and with whose settings they were written."""

    def __init__(self, directory: Path, writes: list[tuple[str, str | None]]):
        super().__init__()
        self._directory = directory
        self._writes = writes
        self._secret = current_stores().settings.get("s3.secret-key")

    def _local(self, path: str) -> str:
        return str(self._directory / path.partition("://")[2])

    def create(self, path: str, *args: Any, **kwargs: Any) -> Any:
        self._writes.append((path, self._secret))
        return super().create(self._local(path), *args, **kwargs)

    def create_once(self, path: str, data: bytes) -> None:
        self._writes.append((path, self._secret))
        super().create_once(self._local(path), data)

    def read(self, path: str, *args: Any, **kwargs: Any) -> bytes:
        return super().read(self._local(path), *args, **kwargs)

    def exists(self, path: str) -> bool:
        return super().exists(self._local(path))

    def size(self, path: str) -> int:
        return super().size(self._local(path))

    def delete(self, path: str) -> None:
        super().delete(self._local(path))

    def delete_tree(self, directory: str) -> None:
        super().delete_tree(self._local(directory))

    def delete_empty(self, directory: str) -> None:
        super().delete_empty(self._local(directory))

    def list(self, directory: str) -> list[str]:
        return super().list(self._local(directory))

    def makedirs(self, directory: str) -> None:
        super().makedirs(self._local(directory))


def secret_here(_value: Any) -> str | None:
    return current_stores().settings.get("s3.secret-key")


def job(name: str, settings: dict[str, str]) -> Any:
    checkpoints = {"execution.checkpointing.interval": "10 ms", "execution.checkpointing.dir": f"spied://{name}"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({**checkpoints, **settings}))
    env._executor = InProcessExecutor()
    keyed = env.from_sequence(1, 200).key_by(lambda n: n % 3).reduce(lambda a, b: a + b)
    return keyed.map(secret_here).execute_and_collect()


def test_jobs_of_one_process_do_not_share_credentials(tmp_path: Path) -> None:
    writes: list[tuple[str, str | None]] = []

    def create() -> FileSystem:
        return Spying(tmp_path, writes)

    with registered_scheme("spied", create):
        first = job("first", {"s3.secret-key": "of the first"})
        second = job("second", {})
        third = job("third", {"s3.secret-key": "of the third"})
        with first, second, third:
            assert set(second) == {None}
            assert set(first) == {"of the first"}
            assert set(third) == {"of the third"}
    written = {(path.partition("://")[2].partition("/")[0], secret) for path, secret in writes}
    assert written == {("first", "of the first"), ("second", None), ("third", "of the third")}


def test_a_thread_has_the_stores_it_was_bound_to() -> None:
    mine = Stores({"s3.access-key": "mine"})
    seen: list[dict[str, str]] = []

    def look() -> None:
        seen.append(current_stores().settings)

    for target in (look, mine.bind(look)):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert seen == [{}, {"s3.access-key": "mine"}]
    assert current_stores() is not mine


@pytest.mark.parametrize("key", ["s3.endpoint", "s3a.endpoint", "fs.s3a.endpoint"])
def test_all_spellings_of_a_key(key: str) -> None:
    before = current_stores()
    try:
        stores = configure_filesystems(Configuration.from_dict({key: "http://here"}))
        assert stores.settings == {"s3.endpoint": "http://here"}
        assert configure_filesystems(Configuration.from_dict({key: "http://here"})) is stores
    finally:
        before.use()
