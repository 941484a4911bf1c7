"""Tables of the tests, each in a schema of its own, and sinks that write to them."""

from __future__ import annotations

import itertools
from typing import Any

import psycopg
import pytest

from firesteel.connectors.postgres.sink.builder import PostgresSinkBuilder
from firesteel.connectors.postgres.sink.sink import PostgresSink
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import eventually

EXACTLY_ONCE = DeliveryGuarantee.EXACTLY_ONCE
DEADLINE_S = 60.0

_numbers = itertools.count(1)


class Tables:
    """A schema of the server, and a connection that looks into it."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.schema = f"s{next(_numbers)}"
        self.url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres?options=-csearch_path%3D{self.schema}"
        self._connection: psycopg.Connection[Any] | None = None
        self.run(f"CREATE SCHEMA {self.schema}")

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = psycopg.connect(self.url, autocommit=True, prepare_threshold=None)
            self._connection.execute("SET lock_timeout = '60s'")
        cursor = self._connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []

    def column(self, statement: str, *values: Any) -> list[Any]:
        return [row[0] for row in self.run(statement, *values)]

    def url_of(self, user: str, password: str = "") -> str:
        return self.url.replace("postgres@", f"{user}:{password}@" if password else f"{user}@")

    def sink(self, table: str = "t") -> PostgresSinkBuilder:
        return PostgresSink.builder().set_url(self.url).set_table(table)

    def sessions(self) -> list[int]:
        """The sinks' writers that are connected."""
        return self.column(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'firesteel %' "
            "AND application_name <> 'firesteel committer'"
        )

    def end_sessions(self) -> int:
        """Ends all sessions of sources and sinks, as a restart of the server would."""
        return len(
            self.column(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name LIKE 'firesteel%'"
            )
        )

    def forget(self) -> None:
        """Gives the connection up: the next statement opens another one."""
        assert self._connection is not None
        self._connection.close()
        self._connection = None

    def close(self) -> None:
        self.run(f"DROP SCHEMA {self.schema} CASCADE")
        # the server's part of a connection ends a moment after the other
        left = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'firesteel%'"
        eventually(lambda: self.column(left) == [], DEADLINE_S)
        self.forget()


@pytest.fixture
def tables(postgres):
    tables = Tables(postgres)
    yield tables
    tables.close()
