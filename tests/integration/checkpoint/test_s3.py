"""What is particular to S3; the tests that use the fixture ``store`` run against it as well."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common.errors import CheckpointStorageError, StateIncompatibleError
from firesteel.config.configuration import Configuration
from firesteel.filesystem import fsspec_filesystem
from firesteel.filesystem.stores import close_filesystems, configure_filesystems, get_filesystem
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.checkpoint.storage import CheckpointStorage, dispose, load
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.state_handles import FileSegment
from tests.support.checkpoints.handles import checkpoint_of
from tests.support.checkpoints.store import CheckpointStore, s3_store
from tests.support.services.s3_server import S3Server, skip_without_s3

JOB = "0123456789abcdef"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def s3(s3_server: S3Server) -> Iterator[CheckpointStore]:
    with s3_store(s3_server) as store:
        yield store


@pytest.fixture
def configured() -> Iterator[None]:
    """Undoes what a test configures."""
    yield
    close_filesystems()
    configure_filesystems(Configuration())


def test_the_schemes_of_flink_mean_the_same_store(s3: CheckpointStore) -> None:
    s3.filesystem.write(s3.path("file"), [b"x"])
    for scheme in ("s3a", "s3p"):
        path = s3.path("file").replace("s3://", f"{scheme}://")
        assert get_filesystem(path).read(path) == b"x"


def test_a_savepoint_is_copied_from_s3_to_disk(s3: CheckpointStore, tmp_path: Path) -> None:
    storage = CheckpointStorage(s3.base, JOB)
    place = storage.savepoint_location(s3.path("savepoints"))
    files = SnapshotFiles(place)
    segment = files.write(b"state" * 10_000, shared=False)
    files.finish()
    storage.store(place, checkpoint_of(segment, kind=SnapshotKind.SAVEPOINT))
    for name in s3.filesystem.list(place.exclusive):
        s3.filesystem.download(f"{place.exclusive}/{name}", tmp_path / name)
    (moved,) = load(str(tmp_path)).segments()
    assert moved.path.startswith(str(tmp_path))
    with StateFileReader() as reader:
        assert reader.read(moved) == b"state" * 10_000
    dispose(place.exclusive)
    assert s3.files() == []


def test_an_upload_in_parts_that_was_given_up_leaves_no_parts(s3: CheckpointStore) -> None:
    files = SnapshotFiles(CheckpointStorage(s3.base, JOB).location(1))
    for _ in range(3):
        files.write(os.urandom(1 << 20) * 9, shared=True)
    client = s3.filesystem._inner._store  # type: ignore[attr-defined]
    bucket = s3.base.partition("://")[2].partition("/")[0]
    assert client.list_multipart_uploads(bucket), "it is under way"
    files.discard()
    assert not client.list_multipart_uploads(bucket)
    assert s3.files() == []


def test_a_writer_that_is_forgotten_does_not_become_a_file(s3: CheckpointStore) -> None:
    writer = s3.filesystem.create(s3.path("file"))
    writer.write(b"x")
    writer.abort()
    del writer
    gc.collect()
    assert s3.files() == []


def test_a_missing_bucket_is_said(s3: CheckpointStore) -> None:
    storage = CheckpointStorage(f"s3://no-such-bucket-{uuid.uuid4().hex}/checkpoints", JOB)
    with pytest.raises(CheckpointStorageError, match="no-such-bucket") as raised:
        storage.check_writable()
    assert raised.value.path is not None


def test_a_service_that_does_not_answer_is_said(configured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_s3()
    settings = {
        "s3.endpoint": "http://127.0.0.1:9",
        "s3.access-key": "x",
        "s3.secret-key": "y",
        "s3.path.style.access": "true",
    }
    monkeypatch.setattr(fsspec_filesystem, "_MAX_ATTEMPTS", 1)
    configure_filesystems(Configuration.from_dict(settings))
    with pytest.raises(CheckpointStorageError, match=r"Cannot read s3://bucket/x/_metadata: .*connect") as raised:
        load("s3://bucket/x")
    assert raised.value.hint is not None
    assert not isinstance(raised.value, StateIncompatibleError)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, configured: None) -> None:
    close_filesystems()

    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(fsspec_filesystem.importlib, "import_module", missing)  # type: ignore[attr-defined]
    with pytest.raises(CheckpointStorageError, match="No module named 'fsspec'") as raised:
        get_filesystem("s3://bucket/path")
    assert "pip install 'firesteel[s3]'" in (raised.value.hint or "")


def test_settings_reach_the_client(s3_server: S3Server, configured: None) -> None:
    configure_filesystems(
        Configuration.from_dict(
            {
                **s3_server.settings,
                "s3.endpoint.region": "eu-central-1",
                "s3.session.token": "a-token",
                "unrelated": "x",
            }
        )
    )
    client = get_filesystem("s3://bucket")._inner._store  # type: ignore[attr-defined]
    assert client.endpoint_url == s3_server.endpoint
    assert (client.key, client.secret, client.token) == ("tester", "secret", "a-token")
    assert client.client_kwargs == {"region_name": "eu-central-1"}
    assert client.config_kwargs["s3"] == {"addressing_style": "path"}


@pytest.mark.parametrize("prefix", ["s3.", "s3a.", "fs.s3a."])
def test_keys_may_begin_as_in_flink(prefix: str, s3_server: S3Server, configured: None) -> None:
    settings = {prefix + key.removeprefix("s3."): value for key, value in s3_server.settings.items()}
    configure_filesystems(Configuration.from_dict(settings))
    client = get_filesystem("s3://bucket")._inner._store  # type: ignore[attr-defined]
    assert (client.endpoint_url, client.key, client.secret) == (s3_server.endpoint, "tester", "secret")


def test_the_same_configuration_keeps_the_connections(s3: CheckpointStore, s3_server: S3Server) -> None:
    before = s3.filesystem
    configure_filesystems(s3_server.configuration)
    assert s3.filesystem is before
    configure_filesystems(Configuration.from_dict({**s3_server.settings, "s3.endpoint.region": "eu-west-1"}))
    assert s3.filesystem is not before
    before.close()


def test_a_forked_process_has_connections_of_its_own(s3: CheckpointStore) -> None:
    s3.filesystem.write(s3.path("parent"), [b"x"])
    script = f"""
import os, sys
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import close_filesystems, configure_filesystems, get_filesystem
configure_filesystems(Configuration.from_dict({_settings(s3)!r}))
path = {s3.base!r}
get_filesystem(path).write(path + "/before", [b"x"])
pid = os.fork()
if pid == 0:
    get_filesystem(path).write(path + "/child", [b"x"])
    os._exit(0)
_, status = os.waitpid(pid, 0)
assert status == 0, status
get_filesystem(path).write(path + "/after", [b"x"])
close_filesystems()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=False, timeout=180, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert s3.files() == ["after", "before", "child", "parent"]


def _settings(store: CheckpointStore) -> dict[str, str]:
    client = store.filesystem._inner._store  # type: ignore[attr-defined]
    return {
        "s3.endpoint": client.endpoint_url,
        "s3.access-key": client.key,
        "s3.secret-key": client.secret,
        "s3.path.style.access": "true",
    }


def test_a_whole_checkpoint_on_s3(s3: CheckpointStore, tmp_path: Path) -> None:
    storage = CheckpointStorage(s3.base, JOB)
    storage.check_writable()
    place = storage.location(1)
    files = SnapshotFiles(place)
    sst = tmp_path / "000001.sst"
    sst.write_bytes(os.urandom(9 << 20))
    segments = [files.upload(sst, shared=True), files.write(b"x" * 50_000, shared=False)]
    files.finish()
    path = storage.store(place, checkpoint_of(*segments))
    metadata = load(storage.job_directory)
    assert metadata == CheckpointMetadata.from_bytes(s3.filesystem.read(path + "/_metadata"), path)
    found = list(metadata.segments())
    assert isinstance(found[0], FileSegment)
    with StateFileReader() as reader:
        reader.download_all([(found[0], tmp_path / "back")])
        assert reader.read(found[1]) == b"x" * 50_000
    assert (tmp_path / "back").read_bytes() == sst.read_bytes()
