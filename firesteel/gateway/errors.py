"""Errors of the SQL Gateway, as chains of causes in Flink's notation."""

from __future__ import annotations

from firesteel.common.errors import FiresteelError
from firesteel.table.bound.errors import ValidationError
from firesteel.table.parser import SqlParserException

__all__ = ["SqlExecutionError", "SqlGatewayError"]

_GATEWAY = "org.apache.flink.table.gateway.api.utils.SqlGatewayException"
_EXECUTION = "org.apache.flink.table.gateway.service.utils.SqlExecutionException"
_PARSER = "org.apache.flink.table.api.SqlParserException"
_VALIDATION = "org.apache.flink.table.api.ValidationException"
_TABLE = "org.apache.flink.table.api.TableException"
_FRAME = "\tat firesteel.gateway"
"""Flink's client reads a message to the first line of the stack."""


class SqlGatewayError(FiresteelError):
    """A request that failed.

    The status is that of Flink's gateway. ``causes`` are messages from the request to its root, each with the name of
    the exception that Flink raises: Flink's clients print the last one.
    """

    def __init__(self, *messages: str, status: int = 500, cause: BaseException | None = None):
        self.status = status
        self.causes = [(_GATEWAY, message) for message in messages]
        if cause is not None:
            self.causes += _causes_of(cause)
        super().__init__(self.causes[-1][1])

    def under(self, message: str) -> SqlGatewayError:
        """The same error as the cause of another one."""
        error = SqlGatewayError(message, status=self.status)
        error.causes += self.causes
        error.message = self.message
        return error

    @property
    def errors(self) -> list[str]:
        """What the client is told: the causes as Java prints them, which Flink's clients look through."""
        lines = "\nCaused by: ".join(f"{name}: {message}\n{_FRAME}" for name, message in self.causes)
        if self.status != 500:
            return [lines]
        return ["Internal server error.", f"<Exception on server side:\n{lines}\n\nEnd of exception on server side>"]


class SqlExecutionError(SqlGatewayError):
    """An operation that failed."""

    def __init__(self, message: str, cause: BaseException | None = None):
        super().__init__(message, cause=cause)
        self.causes[0] = (_EXECUTION, message)


def _message(error: BaseException) -> str:
    """What is wrong, and the hint."""
    return str(error) or type(error).__name__


def _causes_of(error: BaseException) -> list[tuple[str, str]]:
    if isinstance(error, SqlGatewayError):
        return error.causes
    match error:
        case SqlParserException():
            name = _PARSER
        case ValidationError():
            name = _VALIDATION
        case FiresteelError():
            name = _TABLE
        case _:
            name = type(error).__name__
    return [(name, _message(error))]
