"""Connection settings of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.connectors.postgres.errors import PostgresConnectionError, translate

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresConnectionOptions", "connect", "describe_table", "import_psycopg", "split_name", "translating"]

_JDBC = "jdbc:"
_SCHEMES = ("postgresql://", "postgres://")

# a parameter of the JDBC driver → libpq's; None: it changes nothing here
_JDBC_PARAMETERS: dict[str, str | None] = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "options": "options",
    "channelBinding": "channel_binding",
    "tcpKeepAlive": None,
    "reWriteBatchedInserts": None,
    "prepareThreshold": None,
    "defaultRowFetchSize": None,
    "stringtype": None,
    "binaryTransfer": None,
}

# A server that vanished without a word is noticed after half a minute, as is one that no longer takes what is sent.
_LIVENESS = {
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True)
class PostgresConnectionOptions:
    """Where the server is and who asks.

    ``url`` is ``postgresql://host:port/database``, a libpq connection string (``host=... dbname=...``) or what a JDBC
    program has: ``jdbc:postgresql://host:port/database``. User and password may be in it, or given beside it.
    ``properties`` are further libpq parameters, such as ``sslmode``. Environment variables and ``~/.pgpass`` are read
    as by all PostgreSQL clients, where the tasks run.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    connect_timeout_s: int = 10
    lock_timeout_s: int = 30
    """How long a statement waits for a lock that someone else holds."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not self.url.strip():
            raise InvalidProgramError(
                "PostgreSQL: the URL is missing.", hint="It is of the form postgresql://host:5432/database."
            )
        if self.connect_timeout_s <= 0 or self.lock_timeout_s <= 0:
            raise InvalidProgramError("PostgreSQL: timeouts must be positive.")
        scheme = self.url.partition("//")[0] if "://" in self.url.partition("=")[0] else ""
        if self.url.startswith(_JDBC) or scheme:
            self._libpq_url()

    def __repr__(self) -> str:
        return f"PostgresConnectionOptions({self.describe()})"

    def describe(self) -> str:
        """The server and the database, without user and password."""
        try:
            url = self._libpq_url()
        except InvalidProgramError:
            return "?"
        if url.startswith(_SCHEMES):
            parts = urlsplit(url)
            return f"{parts.netloc.rpartition('@')[2] or 'localhost'}{parts.path}"
        shown = [word for word in url.split() if word.startswith(("host=", "hostaddr=", "port=", "dbname="))]
        return " ".join(shown) or "localhost"

    def conninfo(self, **parameters: str) -> str:
        """What libpq is given; ``parameters`` go before everything else."""
        import_psycopg()
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        given: dict[str, Any] = {
            "connect_timeout": str(self.connect_timeout_s),
            "client_encoding": "UTF8",
            **_LIVENESS,
        }
        with translating("The connection parameters cannot be used", self.describe()):
            given.update(conninfo_to_dict(self._libpq_url()))
            given.update(self.properties)
            if self.user is not None:
                given["user"] = self.user
            if self.password is not None:
                given["password"] = self.password
            given.update(parameters)
            return make_conninfo("", **given)

    def _libpq_url(self) -> str:
        url = self.url.strip()
        if url.startswith(_JDBC):
            return _from_jdbc(url)
        if "://" in url.partition("=")[0] and not url.startswith(_SCHEMES):
            raise _other_database(url)
        return url


def import_psycopg() -> Any:
    """The psycopg module; a clear error where it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise FiresteelError(
            f"The PostgreSQL connector needs psycopg, which cannot be imported: {error}",
            hint="pip install 'firesteel[postgres]', where the job's tasks run too.",
        ) from error
    return psycopg


def connect(
    options: PostgresConnectionOptions, /, *, name: str = "firesteel", autocommit: bool = True, **parameters: str
) -> psycopg.Connection[Any]:
    """Opens a connection; ``name`` is shown in pg_stat_activity, ``parameters`` are libpq's."""
    module = import_psycopg()
    conninfo = options.conninfo(application_name=name[:63], **parameters)
    try:
        connection = cast("psycopg.Connection[Any]", module.connect(conninfo, autocommit=autocommit))
    except module.Error as error:
        said = " ".join(str(error).split())
        raise PostgresConnectionError(
            f"No connection to PostgreSQL at {options.describe()}: {said}",
            server=options.describe(),
            sqlstate=error.sqlstate,
            hint=_connection_hint(said),
        ) from error
    if "replication" not in parameters:
        try:
            # UTC, wherever the server is: what a datetime without time zone means must not depend on it; and all digits
            # of a floating point number, or it would not be found again by its value
            connection.execute(
                f"SET lock_timeout = '{options.lock_timeout_s}s'; SET TIME ZONE 'UTC'; SET extra_float_digits = 3"
            )
            if not autocommit:
                connection.commit()
        except module.Error as error:
            connection.close()
            raise translate(error, "The session cannot be set up", server=options.describe()) from error
    return connection


@contextmanager
def translating(doing: str, server: str, *, table: str | None = None, hint: str | None = None) -> Iterator[None]:
    """Turns psycopg's errors into PostgresErrors; ``doing`` is what failed, as the beginning of a sentence."""
    psycopg = import_psycopg()
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, doing, server=server, table=table, hint=hint) from error


def split_name(table: str) -> tuple[str, ...]:
    """The parts of a table's name, of which those in double quotes are taken as they are.

    >>> split_name('public.orders'), split_name('"My.Orders"'), split_name('Orders')
    (('public', 'orders'), ('My.Orders',), ('orders',))
    """
    parts: list[str] = []
    rest = table.strip()
    if rest.endswith("."):
        raise _bad_name(table)
    while rest:
        if rest.startswith('"'):
            end = 1
            while end < len(rest) and (rest[end] != '"' or rest[end : end + 2] == '""'):
                end += 2 if rest[end] == '"' else 1
            parts.append(rest[1:end].replace('""', '"'))
            rest, closed = rest[end + 1 :], end < len(rest)
            if not closed or (rest and not rest.startswith(".")):
                raise _bad_name(table)
            rest = rest[1:]
        else:
            part, _, rest = rest.partition(".")
            # as in SQL: a name without quotes is in small letters
            parts.append(part.strip().lower())
    if not 1 <= len(parts) <= 2 or not all(parts):
        raise _bad_name(table)
    return tuple(parts)


def describe_table(name: tuple[str, ...]) -> str:
    """A table's name for messages."""
    return ".".join(name)


def _bad_name(table: str) -> InvalidProgramError:
    return InvalidProgramError(
        f"PostgreSQL: {table!r} is not the name of a table.",
        hint="It is of the form table or schema.table; parts with capitals or dots are put in double quotes.",
    )


def _from_jdbc(url: str) -> str:
    """The libpq URL for that of a JDBC program."""
    rest = url[len(_JDBC) :]
    if not rest.startswith("postgresql:"):
        raise _other_database(url)
    rest = rest[len("postgresql:") :]
    if not rest.startswith("//"):
        rest = f"//localhost/{rest.lstrip('/')}"  # jdbc:postgresql:database
    location, _, query = rest.partition("?")
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "currentSchema":
            parameters["options"] = f"-csearch_path={value}"
        elif name == "ssl":
            if value.lower() in ("", "true"):
                parameters.setdefault("sslmode", "verify-full")
        elif name not in _JDBC_PARAMETERS:
            raise InvalidProgramError(
                f"PostgreSQL: the JDBC parameter '{name}' is not understood.",
                hint="Give connection parameters by their libpq names: postgresql://host/database?name=value.",
            )
        elif (mapped := _JDBC_PARAMETERS[name]) is not None:
            parameters[mapped] = value
    host, _, database = location[2:].partition("/")
    encoded = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    return f"postgresql://{host}/{quote(unquote(database), safe='')}{'?' + encoded if encoded else ''}"


def _other_database(url: str) -> InvalidProgramError:
    kind = url.partition("//")[0].rstrip(":")
    return InvalidProgramError(
        f"'{kind}' is not a PostgreSQL URL: no other database is supported.",
        hint="It is of the form jdbc:postgresql://host:5432/database or postgresql://host:5432/database.",
    )


def _connection_hint(said: str) -> str:
    # libpq gives no code for these, only the words of the server or of the system
    if "password" in said or "authentication" in said:
        return "Check user and password, and pg_hba.conf of the server."
    if "role" in said and "does not exist" in said:
        return "Check the user's name."
    if "database" in said and "does not exist" in said:
        return "Create the database, or correct its name in the URL."
    if "resolve host" in said:
        return "Check the host's name in the URL."
    if "too many" in said or "remaining connection slots" in said:
        return "The server has no connection left: raise max_connections, or use fewer subtasks."
    return "Check host and port in the URL, and that the server runs and is reachable from where the job's tasks run."
