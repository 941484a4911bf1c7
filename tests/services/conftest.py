"""The real servers of these tests: started once, on loopback; tests of one that cannot be had are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from s3_server import S3Server, running_s3_server

from firesteel.testing.services.kafka_broker import KafkaBroker
from firesteel.testing.services.postgres_server import PostgresServer
from firesteel.testing.services.processes import ServiceUnavailable


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    try:
        broker = KafkaBroker().start()
    except ServiceUnavailable as error:
        pytest.skip(f"no Kafka: {error}")
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer().start()
    except ServiceUnavailable as error:
        pytest.skip(f"no PostgreSQL: {error}")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server
