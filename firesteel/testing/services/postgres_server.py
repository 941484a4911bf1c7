"""A real PostgreSQL server for tests, from the distribution's package."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.testing.services.processes import ServerProcess, ServiceUnavailable, free_ports, require_package

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PostgresServer", "postgres_binaries"]

_USER = "postgres"
_DIRECTORIES = "/usr/lib/postgresql"
_TEMPORARY = "/tmp"  # noqa: S108 - mkdtemp makes a directory of its own there


class PostgresServer:
    """One server on loopback that keeps a log for logical replication; the data is deleted with it."""

    def __init__(self, **settings: str) -> None:
        require_package("psycopg", "A PostgreSQL server")
        self._bin = postgres_binaries()
        # the server refuses to run as root
        self._user = _USER if os.geteuid() == 0 else None
        if self._user is not None:
            try:
                pwd.getpwnam(self._user)
            except KeyError:
                raise ServiceUnavailable("PostgreSQL does not run as root, and there is no user postgres.") from None
        self.port = free_ports(1)[0]
        self._databases = itertools.count(1)
        self._server: ServerProcess | None = None
        # TMPDIR may be closed to another user
        self._directory = Path(tempfile.mkdtemp(prefix="firesteel-postgres-", dir=_TEMPORARY if self._user else None))
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._directory),
            "wal_level": "logical",
            "max_wal_senders": "10",
            "max_replication_slots": "10",
            "fsync": "off",
            **settings,
        }
        done = subprocess.run(  # noqa: S603 - a command of ours
            [
                *(str(self._bin / "initdb"), "-D", str(self._data), "-A", "trust", "-U", _USER, "-N"),
                *("--locale=C", "--encoding=UTF8"),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            user=self._user,
            cwd=self._directory,
        )
        if done.returncode != 0:
            raise ServiceUnavailable(f"initdb failed: {done.stderr[-1000:].strip()}")

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def dsn(self) -> str:
        """How to connect, as the superuser."""
        return self.dsn_of(_USER)

    def dsn_of(self, database: str, user: str = _USER) -> str:
        """How to connect to a database as a user."""
        return f"host=127.0.0.1 port={self.port} user={user} dbname={database}"

    def start(self) -> PostgresServer:
        """Starts the server; returns when it answers."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._bin / "postgres"), "-D", str(self._data), *options]
        log = self._directory / "server.log"
        self._server = ServerProcess("PostgreSQL", command, log=log, user=self._user, directory=str(self._directory))
        self._server.await_ready(self._answers)
        return self

    def stop(self) -> None:
        """Stops the server and deletes its data."""
        if self._server is not None:
            self._server.stop(signal.SIGQUIT)
            self._server = None
        shutil.rmtree(self._directory, ignore_errors=True)

    def kill(self) -> None:
        """Kills the server; its data stays, and ``start`` reuses it."""
        assert self._server is not None, "the server is not running"
        # at once, but with its children, which SIGKILL of the first alone would leave
        self._server.stop(signal.SIGQUIT)
        self._server = None
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def restart(self) -> None:
        """Kills the server and starts it again."""
        self.kill()
        self.start()

    def create_database(self) -> str:
        """A new database; how to connect to it."""
        name = f"test_{next(self._databases)}"
        with self.connect(autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.dsn_of(name)

    def connect(self, **options: Any) -> Any:
        """A connection of psycopg."""
        import psycopg

        return psycopg.connect(self.dsn, **options)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(self.dsn, connect_timeout=10):
                return True
        except psycopg.OperationalError:
            return False


def postgres_binaries() -> Path:
    """The directory with the server's programs, of the newest version there is."""
    versions = sorted(Path(_DIRECTORIES).glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    if versions:
        return versions[-1].parent
    found = shutil.which("postgres")
    if found is None:
        raise ServiceUnavailable("PostgreSQL is not installed.")
    return Path(found).resolve().parent
