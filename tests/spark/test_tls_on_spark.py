"""Jobs whose slots speak TLS to each other and to the JobMaster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import JobStatus
from firesteel.config.tls_files import TlsConfigurationError
from firesteel.runtime.network.errors import NetworkError
from firesteel.runtime.network.tls import InternalTls
from firesteel.runtime.network.tls_settings import TlsSettings
from firesteel.runtime.slot.control import dial_control
from tests.support.jobs.endless import collecting, ended, endless, running, status, with_pid
from tests.support.services.certificates import make_certificates

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def internal(place: Path, name: str, ca: str = "ca") -> dict[str, str]:
    files = {"certificate": f"{name}.pem", "key": f"{name}.key", "ca": f"{ca}.pem"}
    settings = {f"security.ssl.internal.{option}": str(place / file) for option, file in files.items()}
    return {"security.ssl.internal.enabled": "true", **settings}


def test_a_shuffle_between_slots(spark_env: Any, certificates: Path) -> None:
    env = spark_env(2, internal(certificates, "server"))
    stream = (
        env.from_sequence(1, 20_000)
        .map(with_pid)
        .key_by(lambda seen: seen[0] % 7)
        .map(lambda seen: (*seen, os.getpid()))
    )
    seen = list(stream.execute_and_collect())
    assert sorted(value for value, _, _ in seen) == list(range(1, 20_001))
    assert any(before != after for _, before, after in seen), "nothing went from one slot to another"


def test_the_control_port_turns_strangers_away_and_the_job_goes_on(spark_env: Any, certificates: Path) -> None:
    client, results = collecting(endless(spark_env(1, internal(certificates, "server"))))
    running(client)
    host = client._handle._host._host._inner  # type: ignore[attr-defined]
    files = [str(certificates / name) for name in ("stranger.pem", "stranger.key", "other-ca.pem")]
    for stranger in (None, InternalTls(TlsSettings(*files))):
        with pytest.raises((NetworkError, OSError)):
            dial_control(host._address, host._secret, 1, stranger)
    next(results)
    assert status(client) is JobStatus.RUNNING
    client.cancel().result(120)
    ended(client)


def test_a_certificate_that_has_expired_is_said_at_once(spark_env: Any, certificates: Path) -> None:
    stream = spark_env(1, internal(certificates, "expired")).from_sequence(1, 10)
    with pytest.raises(TlsConfigurationError, match="certificate has expired"):
        collecting(stream)
