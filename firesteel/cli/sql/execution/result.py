"""The result of a statement, wherever it was executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from firesteel.table.parser.statements.base import Source
    from firesteel.types.logical import RowType

__all__ = ["NULL", "Executor", "ResultKind", "ResultRow", "RowSource", "StatementResult"]

NULL = "<NULL>"

ResultRow = tuple[str, Sequence[str]]
"""The kind of a row, such as ``+I``, and its values as text."""


class ResultKind(Enum):
    """What a statement returns."""

    OK = "ok"
    """Nothing but that it succeeded."""
    CONTENT = "content"
    """A few rows that are there already, such as those of SHOW."""
    QUERY = "query"
    """The rows of a query."""
    INSERT = "insert"
    """The id of a job that writes to tables."""


class RowSource(Protocol):
    """The rows of a result. One thread reads them; another one may cancel."""

    def batches(self) -> Iterator[list[ResultRow]]:
        """The rows, some at a time; the job of an INSERT has ended when there are no more."""
        ...

    def cancel(self) -> None:
        """Ends the job that computes the rows."""
        ...

    def progress(self) -> tuple[int, int] | None:
        """How many tasks have ended, of how many; None if that is not known."""
        ...


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement."""

    kind: ResultKind
    row_type: RowType
    rows: RowSource
    is_streaming: bool = True
    """Whether rows are changes, which have kinds."""
    job_id: str | None = None


class Executor(Protocol):
    """Executes statements in a session."""

    def execute(self, source: Source) -> StatementResult:
        """Executes a statement of a text."""
        ...

    def ask(self, sql: str) -> list[Sequence[str]]:
        """The rows of a statement that shows something, outside of a statement set; for completion."""
        ...

    def options(self) -> Mapping[str, str]:
        """The options that are set in the session."""
        ...

    def in_statement_set(self) -> bool:
        """Whether a statement set has begun and not ended, as far as it is known."""
        ...

    def leave_statement_set(self) -> None:
        """Forgets a statement set that has begun."""
        ...

    def jobs_that_end(self) -> Sequence[str]:
        """The ids of running jobs that end with the shell."""
        ...

    def close(self) -> None:
        """Ends the session."""
        ...
