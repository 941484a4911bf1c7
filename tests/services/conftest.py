"""The real servers of these tests, started once, on loopback. Tests of one that cannot be had are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firesteel.testing.services.kafka_broker import KafkaBroker, kafka_jars
from firesteel.testing.services.postgres_server import PostgresServer, postgres_binaries
from firesteel.testing.services.processes import ServiceUnavailable
from firesteel.testing.services.zookeeper_server import ZooKeeperServer, zookeeper_jar
from tests.support.services.postgres_driver import require_driver_and_server
from tests.support.services.s3_server import S3Server, running_s3_server
from tests.support.sql_oracle.oracle import require_maven

HERE = Path(__file__).parent
REQUIREMENTS: dict[str, tuple[str, Callable[[], Path]]] = {
    "flink": ("Flink's parser and clients", require_maven),
    "kafka": ("Kafka", kafka_jars),
    "postgres": ("PostgreSQL", postgres_binaries),
    "postgres_spark": ("PostgreSQL on Spark", require_driver_and_server),
    "zookeeper": ("ZooKeeper", zookeeper_jar),
}
"""What the tests of a directory need, and how to see whether it is there."""

_left_out: list[str] = []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for directory, (name, require) in REQUIREMENTS.items():
        concerned = [item for item in items if HERE / directory in item.path.parents]
        if not concerned:
            continue
        try:
            require()
        except ServiceUnavailable as error:
            _left_out.append(f"{len(concerned)} tests of {name} are left out: {' '.join(str(error).split())}")
            config.hook.pytest_deselected(items=concerned)
            items[:] = [item for item in items if item not in concerned]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _left_out:
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    settings = {
        # this one is never killed, and a machine that stalls must not make it look dead
        "broker.session.timeout.ms": "60000",
        # it refuses what an ACL denies
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with KafkaBroker(settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server
