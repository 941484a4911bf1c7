from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.cluster.spark_cluster import SparkCluster
from firesteel.common import Configuration
from firesteel.config.tls_files import TlsConfigurationError


def test_a_cluster_whose_tls_cannot_work_says_so_when_it_starts(tmp_path: Path) -> None:
    settings = {"enabled": "true", "certificate": "/missing.pem", "key": "/missing.key", "ca": "/missing-ca.pem"}
    configuration = Configuration.from_dict({f"security.ssl.internal.{key}": value for key, value in settings.items()})
    cluster = SparkCluster(configuration, tmp_path / "spark.log")
    cluster.start()
    with pytest.raises(TlsConfigurationError, match=r"security\.ssl\.internal\.certificate"):
        cluster.await_start()
