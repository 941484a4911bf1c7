"""``firesteel sql-gateway``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firesteel.cli.main import main
from tests.support.rest.gateway_client import GatewayClient


def test_a_gateway_in_the_background(state_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "gateway"
    command = ["sql-gateway", f"-Dcluster.directory={directory}", "-Dsql-gateway.endpoint.rest.bind-port=0"]
    assert main([*command, "start", "--embedded"]) == 0
    try:
        url = re.search(r"http://\S+:\d+", capsys.readouterr().err)
        assert url is not None
        client = GatewayClient(url[0], (directory / "token").read_text().strip())
        session = client.open_session()
        assert client.rows(session, "SHOW CATALOGS") == [["default_catalog"]]
        assert main([*command, "start", "--embedded"]) == 2
        assert "is running" in capsys.readouterr().err
    finally:
        assert main([*command, "stop"]) == 0
    assert main([*command, "stop"]) == 2
