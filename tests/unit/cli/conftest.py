"""What tests of the command line share: no cluster of the user's is found, and one in this process can be had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_in_process import InProcessCluster


@pytest.fixture(autouse=True)
def state_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where clusters are looked for: a directory of the test's own."""
    directory = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))
    for name in ("FIRESTEEL_JOBMANAGER", "FIRESTEEL_REST_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    return directory / "firesteel"


@pytest.fixture
def cluster(state_directory: Path) -> Iterator[InProcessCluster]:
    """A session cluster of this machine whose JobManager and slots are threads of this process."""
    with InProcessCluster(state_directory / "default") as running:
        yield running
