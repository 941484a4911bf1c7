"""What tests on a Spark standalone cluster share: the cluster itself, which takes long to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.services.standalone_cluster import StandaloneCluster


@pytest.fixture(scope="package")
def cluster_of_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master and two workers with one core each; they may lose executors, but are there to the end."""
    cluster = StandaloneCluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.add_workers(2)
        yield cluster
    finally:
        cluster.close()
