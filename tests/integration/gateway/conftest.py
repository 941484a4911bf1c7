"""A cluster in this process, with its gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rest.cluster_in_process import InProcessCluster
from tests.support.rest.gateway_client import GatewayClient


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[InProcessCluster]:
    with InProcessCluster(tmp_path / "cluster") as a_cluster:
        yield a_cluster


@pytest.fixture
def client(cluster: InProcessCluster) -> GatewayClient:
    return GatewayClient(cluster.url, cluster.token_file.read_text().strip())


@pytest.fixture
def session(client: GatewayClient) -> Iterator[str]:
    handle = client.open_session()
    yield handle
    client.call("DELETE", f"/sessions/{handle}")
