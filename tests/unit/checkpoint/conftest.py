from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.filesystem.stores import register_wrapper
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.checkpoints.store import CheckpointStore, local_store, s3_store
from tests.support.services.s3_server import S3Server, running_s3_server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


@pytest.fixture(scope="session", params=["local", "s3"])
def service(request: pytest.FixtureRequest) -> S3Server | None:
    """What a store is in. Of the session, so that a test does not count as leaving it behind."""
    if request.param == "local":
        return None
    server: S3Server = request.getfixturevalue("s3_server")
    return server


@pytest.fixture
def store(service: S3Server | None, tmp_path: Path) -> Iterator[CheckpointStore]:
    """A place for checkpoints: each test that uses it runs on the local disk and against S3."""
    with local_store(tmp_path) if service is None else s3_store(service) as found:
        yield found


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[StorageFaults]:
    """Makes every file system of this process misbehave on demand."""
    found = StorageFaults(tmp_path / "faults")
    register_wrapper(found.wrap)
    yield found
    register_wrapper(None)
