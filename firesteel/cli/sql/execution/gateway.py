"""Statements that a SQL gateway executes, Firesteel's or Flink's, over its REST API."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from firesteel.cli.sql.execution.gateway_types import row_type_of
from firesteel.cli.sql.execution.result import NULL, ResultKind, ResultRow, StatementResult
from firesteel.client.connection import ClusterClient
from firesteel.client.discovery import connect
from firesteel.common.errors import FiresteelError
from firesteel.config import pipeline_options
from firesteel.config.configuration import Configuration
from firesteel.rest.client import RestClientError
from firesteel.rest.endpoint import Endpoint
from firesteel.table.parser.statements.base import Source

__all__ = ["GatewayExecutor"]

_SESSION = "/sessions/:session"
_OPERATION = f"{_SESSION}/operations/:operation"
# Flink's own paths, whose answers have what other versions of Flink add: not the types of this version's gateway.
_OPEN: Endpoint[Any, Any] = Endpoint("POST", "/sessions", "", dict, dict)
_CLOSE: Endpoint[Any, Any] = Endpoint("DELETE", _SESSION, "", dict)
_OPTIONS: Endpoint[Any, Any] = Endpoint("GET", _SESSION, "", dict)
_HEARTBEAT: Endpoint[Any, Any] = Endpoint("POST", f"{_SESSION}/heartbeat", "", dict)
_EXECUTE: Endpoint[Any, Any] = Endpoint("POST", f"{_SESSION}/statements", "", dict, dict)
_FETCH: Endpoint[Any, Any] = Endpoint("GET", f"{_OPERATION}/result/:token", "", dict)
_CANCEL: Endpoint[Any, Any] = Endpoint("POST", f"{_OPERATION}/cancel", "", dict)
_CLOSE_OPERATION: Endpoint[Any, Any] = Endpoint("DELETE", f"{_OPERATION}/close", "", dict)

_KINDS = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}
_TOKEN = re.compile(r"/result/(\d+)")
_CAUSE = re.compile(
    r"Caused by: (?:[\w.$]+: )?(.*?)(?=\n\tat |\n\s*\.\.\. |\nCaused by: |\n\s*End of exception|\Z)", re.DOTALL
)
_CHANGES = re.compile(r"\s*(?:SET|RESET)\b", re.IGNORECASE)
_FIRST_WAIT_S, _LAST_WAIT_S = 0.01, 0.5
_HEARTBEAT_S = 60.0


class GatewayExecutor:
    """Executes statements in a session of a gateway."""

    def __init__(self, client: ClusterClient, session: str) -> None:
        self._client = client
        self._session = session
        self._options: dict[str, str] | None = None
        self._in_set = False
        self._is_closed = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="firesteel-sql-heartbeat", daemon=True)
        self._heart.start()

    @staticmethod
    def open(address: str, name: str, settings: Mapping[str, str]) -> GatewayExecutor:
        """Opens a session; its options are those of the settings."""
        client = connect(settings, address).client()
        try:
            opened = client.call(_OPEN, body={"sessionName": name, "properties": dict(settings)})
        except BaseException:
            client.__exit__(None, None, None)
            raise
        return GatewayExecutor(client, opened["sessionHandle"])

    def execute(self, source: Source) -> StatementResult:
        """Executes a statement and waits for the beginning of its result."""
        rows, first = self._begin(source.text)
        word = source.text.split(None, 1)[0].upper()
        if _CHANGES.match(source.text):
            self._options = None
        if word in ("BEGIN", "END"):
            self._in_set = word == "BEGIN"
        kind = ResultKind.CONTENT
        if first.get("resultKind") == "SUCCESS":
            kind = ResultKind.OK
        elif first.get("isQueryResult"):
            kind = ResultKind.QUERY
        elif first.get("jobID"):
            kind = ResultKind.INSERT
        rows.null = NULL if kind is ResultKind.QUERY else ""
        options = Configuration.from_dict(dict(self.options()))
        return StatementResult(
            kind,
            row_type_of(first["results"]["columns"]),
            rows,
            is_streaming=options.get(pipeline_options.RUNTIME_MODE) != "BATCH",
            job_id=first.get("jobID"),
        )

    def ask(self, sql: str) -> list[Sequence[str]]:
        """The rows of a statement that shows something; none within a statement set, where it would be refused."""
        if self._in_set:
            return []
        rows, _ = self._begin(sql)
        return [row for batch in rows.batches() for _, row in batch]

    def options(self) -> Mapping[str, str]:
        """The options of the session."""
        if self._options is None:
            self._options = dict(self._call(_OPTIONS)["properties"])
        return self._options

    def in_statement_set(self) -> bool:
        """Whether a statement set was begun here and not ended."""
        return self._in_set

    def leave_statement_set(self) -> None:
        """Nothing: the gateway has no call for it."""

    def jobs_that_end(self) -> Sequence[str]:
        """None: jobs run on the cluster of the gateway."""
        return ()

    def close(self) -> None:
        """Closes the session."""
        self._is_closed.set()
        self._heart.join()
        with suppress(FiresteelError):
            self._call(_CLOSE)
        self._client.__exit__(None, None, None)

    def _begin(self, sql: str) -> tuple[_Operation, dict[str, Any]]:
        operation = _Operation(self, self._call(_EXECUTE, body={"statement": sql})["operationHandle"])
        return operation, operation.first()

    def _call(self, endpoint: Endpoint[Any, Any], path: Mapping[str, str | int] | None = None, **more: Any) -> Any:
        try:
            return self._client.call(endpoint, {"session": self._session, **(path or {})}, **more)
        except RestClientError as error:
            raise _root_of(error) from error

    def _beat(self) -> None:
        while not self._is_closed.wait(_HEARTBEAT_S):
            with suppress(FiresteelError):
                self._call(_HEARTBEAT)


class _Operation:
    """The pages of a result."""

    def __init__(self, executor: GatewayExecutor, handle: str) -> None:
        self._executor = executor
        self._path = {"operation": handle}
        self._page: dict[str, Any] | None = None
        self._is_cancelled = threading.Event()
        self.null = ""

    def first(self) -> dict[str, Any]:
        """The first page, once the statement has one."""
        self._page = self._fetch(0)
        return self._page

    def batches(self) -> Iterator[list[ResultRow]]:
        page = self._page
        while page is not None and not self._is_cancelled.is_set():
            rows = [_row(row, self.null) for row in (page.get("results") or {}).get("data", ())]
            if rows:
                yield rows
            following = _TOKEN.search(page.get("nextResultUri") or "")
            page = None if following is None or page["resultType"] == "EOS" else self._fetch(int(following[1]))
        self._close()

    def cancel(self) -> None:
        self._is_cancelled.set()
        with suppress(FiresteelError):
            self._executor._call(_CANCEL, self._path)
        self._close()

    def progress(self) -> tuple[int, int] | None:
        return None

    def _fetch(self, token: int) -> dict[str, Any]:
        pause = _FIRST_WAIT_S
        while True:
            query = {"rowFormat": "PLAIN_TEXT"}
            page: dict[str, Any] = self._executor._call(_FETCH, {**self._path, "token": token}, query=query)
            following = _TOKEN.search(page.get("nextResultUri") or "")
            waits = page["resultType"] == "NOT_READY" or (
                page["resultType"] == "PAYLOAD"
                and token > 0
                and not page["results"]["data"]
                and following is not None
                and int(following[1]) == token
            )
            if not waits or self._is_cancelled.wait(pause):
                return page
            pause = min(_LAST_WAIT_S, pause * 2)

    def _close(self) -> None:
        with suppress(FiresteelError):
            self._executor._call(_CLOSE_OPERATION, self._path)


def _row(row: Mapping[str, Any], null: str) -> ResultRow:
    fields = row["fields"]
    return _KINDS[row["kind"]], tuple(null if value is None else str(value) for value in fields)


def _root_of(error: RestClientError) -> FiresteelError:
    """The last cause of an error, without the stack of the gateway."""
    causes = _CAUSE.findall("\n".join(error.messages))
    return FiresteelError(causes[-1].strip()) if causes else error
