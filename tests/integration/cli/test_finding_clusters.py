"""Which cluster a command is meant for."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firesteel.cli.main import main
from firesteel.cli.terminal.connection import connect, find_cluster
from firesteel.client.connection import ClusterAddress
from firesteel.client.errors import ClusterNotFoundError, UsageError
from firesteel.client.local_clusters import LocalCluster, cluster_directory
from firesteel.config.configuration import Configuration


def options(address: str | None = None, cluster_id: str | None = None, *settings: str) -> argparse.Namespace:
    return argparse.Namespace(jobmanager=address, cluster_id=cluster_id, settings=list(settings))


def found(*arguments: str | None) -> ClusterAddress:
    address = find_cluster(options(*arguments))  # type: ignore[arg-type]
    assert address is not None
    return address


def write_entry(directory: Path, port: int, *, pid: int | None = None, started_at: int | None = None) -> None:
    entries = directory / "jobmanagers"
    entries.mkdir(parents=True, exist_ok=True)
    content = {
        "pid": pid or os.getpid(),
        "address": f"localhost:{port}",
        "url": f"http://localhost:{port}",
        "started_at": started_at or int(time.time() * 1000),
        "mode": "session",
        "token_file": str(directory / "token"),
    }
    (entries / f"{port}.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("somewhere:8082", "http://somewhere:8082"),
        ("somewhere", "http://somewhere:8081"),
        ("https://somewhere", "https://somewhere"),
        ("https://somewhere:443/flink/", "https://somewhere:443/flink"),
        ("[::1]:8081", "http://[::1]:8081"),
    ],
)
def test_an_address(given: str, url: str) -> None:
    assert found(given).urls == (url,)


@pytest.mark.parametrize("given", ["ftp://there", "there:port", "http://", "there:99999999"])
def test_no_address(given: str) -> None:
    with pytest.raises(UsageError, match="not a valid JobManager address"):
        find_cluster(options(given))


def test_several_addresses_are_those_of_one_cluster() -> None:
    assert found("one:1,two:2").urls == ("http://one:1", "http://two:2")


def test_the_order_in_which_is_looked(state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_cluster(options()) is None
    write_entry(state_directory / "default", 1)
    assert found().urls == ("http://localhost:1",)
    assert found().token_file == str(state_directory / "default" / "token")
    assert found(None, None, "rest.port=2").urls == ("http://localhost:2",)
    assert found(None, None, "rest.address=far", "rest.port=2").urls == ("http://far:2",)
    monkeypatch.setenv("FIRESTEEL_JOBMANAGER", "near:3")
    assert found(None, None, "rest.port=2").urls == ("http://near:3",)
    assert found("given:4", None, "rest.port=2").urls == ("http://given:4",)


def test_tls_and_path() -> None:
    address = found("far:1", None, "security.ssl.rest.enabled=true", "rest.path=/firesteel/")
    assert address.urls == ("https://far:1/firesteel",)


def test_the_token(state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_entry(state_directory / "default", 1)
    own = str(state_directory / "default" / "token")
    assert found("127.0.0.1:1").token_file == own
    assert found("localhost:2").token_file is None
    monkeypatch.setenv("FIRESTEEL_REST_TOKEN_FILE", "/from/environment")
    assert found("localhost:1").token_file == "/from/environment"
    assert found("localhost:1", None, "rest.token-file=/from/option").token_file == "/from/option"


def test_clusters_by_id(state_directory: Path, tmp_path: Path) -> None:
    write_entry(state_directory / "blue", 1)
    assert found().urls == ("http://localhost:1",)  # the only one there is
    write_entry(state_directory / "green", 2)
    with pytest.raises(UsageError, match="blue, green"):
        find_cluster(options())
    assert found(None, "green").urls == ("http://localhost:2",)
    assert find_cluster(options(None, "red")) is None
    with pytest.raises(ClusterNotFoundError, match="No cluster 'red' is running") as raised:
        connect(options(None, "red"))
    assert raised.value.hint == "Running clusters: blue, green."
    write_entry(state_directory / "default", 3)
    assert found().urls == ("http://localhost:3",)
    write_entry(tmp_path / "elsewhere", 4)
    assert found(None, None, f"cluster.directory={tmp_path / 'elsewhere'}").urls == ("http://localhost:4",)


@pytest.mark.parametrize("cluster_id", ["../other", ".hidden", ""])
def test_an_id_is_a_name(cluster_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "start", "--id", cluster_id]) == 2
    assert "not a valid cluster id" in capsys.readouterr().err


def test_jobmanagers_that_are_gone_do_not_count(state_directory: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    write_entry(state_directory / "default", 1, pid=gone.pid)
    assert find_cluster(options()) is None
    # this process has a number that another one had long ago
    write_entry(state_directory / "default", 2, started_at=1_000_000_000_000)
    assert find_cluster(options()) is None
    write_entry(state_directory / "default", 3)
    (state_directory / "default" / "jobmanagers" / "4.json").write_text('{"pid":')
    assert found().urls == ("http://localhost:3",)


def test_the_directory_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    far = Configuration.from_dict({"high-availability.cluster-id": "far"})
    assert cluster_directory(Configuration()) == tmp_path / "firesteel" / "default"
    assert cluster_directory(Configuration.from_dict({"cluster.directory": "/here"})) == Path("/here")
    assert cluster_directory(far) == tmp_path / "firesteel" / "far"
    elsewhere = tmp_path / "elsewhere"
    LocalCluster("far", elsewhere).remember()
    write_entry(elsewhere, 7)
    assert cluster_directory(far) == elsewhere


def test_a_cluster_in_a_directory_of_its_own_is_found_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    elsewhere = tmp_path / "elsewhere"
    LocalCluster("far", elsewhere).remember()
    assert find_cluster(options(None, "far")) is None
    write_entry(elsewhere, 7)
    assert found(None, "far").urls == ("http://localhost:7",)
    assert found().urls == ("http://localhost:7",)
    assert found("localhost:7").token_file == str(elsewhere / "token")
    # another one of that id, started where clusters are by default, is the one that is meant from now on
    usual = tmp_path / "state" / "firesteel" / "far"
    LocalCluster("far", usual).remember()
    write_entry(usual, 8)
    assert found(None, "far").urls == ("http://localhost:8",)
