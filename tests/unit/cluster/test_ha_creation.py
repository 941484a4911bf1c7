"""What a configuration asks for, and what is said if it makes no sense."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from firesteel.cluster.ha.creation import create_services, storage_directory
from firesteel.cluster.ha.services import HighAvailabilityError
from firesteel.common import Configuration

ZOOKEEPER = {"high-availability.type": "zookeeper", "high-availability.storageDir": "/shared"}


def test_by_default_jobs_are_kept_in_the_directory_of_the_cluster(tmp_path: Path) -> None:
    services = create_services(Configuration(), tmp_path)
    leadership = services.await_leadership("here:1", lambda _reason: None)
    assert leadership.is_valid()
    assert (tmp_path / "ha" / "epochs" / "1" / "leader.json").exists()
    services.close()
    assert not leadership.is_valid()


def test_clusters_that_share_a_directory_are_told_apart(tmp_path: Path) -> None:
    settings = {"high-availability.storageDir": f"file://{tmp_path}/ha", "high-availability.cluster-id": "one"}
    assert storage_directory(Configuration.from_dict(settings), tmp_path) == f"{tmp_path}/ha/one"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"high-availability.storageDir": "s3://bucket/ha"}, "high-availability.storageDir"),
        ({"high-availability.cluster-id": "../x"}, "high-availability.cluster-id"),
        ({"high-availability.filesystem.lease-duration": "0 s"}, "high-availability.filesystem.lease-duration"),
        (ZOOKEEPER, "high-availability.zookeeper.quorum"),
        ({"high-availability.type": "zookeeper", "high-availability.zookeeper.quorum": "h:1"}, "storageDir"),
        (
            {
                **ZOOKEEPER,
                "high-availability.zookeeper.quorum": "h:1",
                "high-availability.zookeeper.client.session-timeout": "1 ms",
            },
            "session-timeout",
        ),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Path, settings: dict[str, str], named: str) -> None:
    with pytest.raises(HighAvailabilityError, match=named) as raised:
        create_services(Configuration.from_dict(settings), tmp_path)
    assert raised.value.hint


def test_what_zookeeper_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "kazoo" or "cluster.ha.zookeeper" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kazoo", None)
    settings = {**ZOOKEEPER, "high-availability.zookeeper.quorum": "127.0.0.1:1"}
    with pytest.raises(HighAvailabilityError, match="kazoo") as raised:
        create_services(Configuration.from_dict(settings), tmp_path)
    assert "firesteel[zookeeper]" in str(raised.value.hint)
