"""PostgreSQL's JDBC driver, which Spark's reader needs."""

from __future__ import annotations

from pathlib import Path

from firesteel.testing.services.kafka_broker import fetch_jars
from firesteel.testing.services.postgres_server import postgres_binaries

__all__ = ["postgres_driver", "require_driver_and_server"]

VERSION = "42.7.7"


def postgres_driver() -> Path:
    """The jar of the driver; fetched if it is not there yet."""
    directory = fetch_jars(f"postgresql-{VERSION}", [("org.postgresql", "postgresql", VERSION)])
    return directory / f"postgresql-{VERSION}.jar"


def require_driver_and_server() -> Path:
    """The driver, where there is a server too."""
    postgres_binaries()
    return postgres_driver()
