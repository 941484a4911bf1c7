"""Reconnecting database session, and the fencing of subtasks of earlier attempts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect, import_psycopg
from firesteel.connectors.postgres.errors import PostgresConnectionError, is_connection_lost, translate

if TYPE_CHECKING:
    import psycopg

__all__ = ["Session", "end_sessions", "find_sessions"]

T = TypeVar("T")

# a deadlock or a conflict of serializable transactions: the transaction was rolled back, and may be run again
_ROLLED_BACK = frozenset({"40001", "40P01"})
_MAX_PAUSE_S = 2.0
_END_DEADLINE_S = 30.0


class Session:
    """Does work on a connection; when that is lost, on another one, up to ``max_retries`` times.

    Only for work that may be done twice: it is unknown whether a statement was executed when the connection was lost.
    ``prepare`` is called with each new connection.
    """

    def __init__(
        self,
        options: PostgresConnectionOptions,
        name: str,
        *,
        max_retries: int,
        prepare: Callable[[psycopg.Connection[Any]], None] | None = None,
    ) -> None:
        self._options = options
        self._name = name
        self._max_retries = max_retries
        self._prepare = prepare
        self._connection: psycopg.Connection[Any] | None = None
        self._was_connected = False
        self.server = options.describe()

    def run(self, work: Callable[[psycopg.Connection[Any]], T], doing: str, *, table: str | None = None) -> T:
        """The result of the work; ``doing`` is what failed if it does, as the beginning of a sentence."""
        module = import_psycopg()
        retries = 0
        while True:
            try:
                return work(self._connected())
            except PostgresConnectionError:
                # a server that was never reached is more likely given wrongly than about to come back
                if retries >= self._max_retries or not self._was_connected:
                    raise
            except module.Error as error:
                lost = is_connection_lost(error)
                if not (lost or error.sqlstate in _ROLLED_BACK) or retries >= self._max_retries:
                    raise translate(error, doing, server=self.server, table=table) from error
            self.close()
            time.sleep(min(_MAX_PAUSE_S, 0.05 * 8**retries))
            retries += 1

    def close(self) -> None:
        """Closes the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = None
            connection = connect(self._options, name=self._name)
            self._was_connected = True
            try:
                if self._prepare is not None:
                    self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def find_sessions(connection: psycopg.Connection[Any], like: str, unlike: str) -> list[int]:
    """The server processes of this user whose application name is like one pattern and not like the other."""
    rows = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = current_user "
        "AND application_name LIKE %s AND application_name NOT LIKE %s",
        (like, unlike),
    ).fetchall()
    return [row[0] for row in rows]


def end_sessions(connection: psycopg.Connection[Any], server: str, like: str, unlike: str) -> None:
    """Ends such sessions, and waits until they have ended.

    A writer that was taken for dead, or the server's part of a connection that was lost, may still be at work: what
    it writes now would come after what its successor writes.
    """
    deadline = time.monotonic() + _END_DEADLINE_S
    while found := find_sessions(connection, like, unlike):
        if time.monotonic() > deadline:
            raise PostgresConnectionError(
                f"A session of an earlier attempt (process {found[0]} of {server}) does not end.",
                server=server,
                hint="End it with pg_terminate_backend, or restart the server.",
            )
        connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (found,))
        time.sleep(0.01)
