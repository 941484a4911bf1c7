"""TableResult: the result of a statement."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from firesteel.common.job_client import JobClient
from firesteel.common.types import Row, RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.session import Session
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.environment.results.tableau import TableauPrinter, texts_of
from firesteel.table.result_kind import ResultKind
from firesteel.table.table_schema import TableSchema
from firesteel.types.arrow_decoding import ArrowRecords
from firesteel.types.logical import RowType, VarCharType

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CloseableIterator", "PrintStyle", "ResultRows", "TableResult", "ok", "rows_of", "strings"]

_KINDS = {kind.value: kind for kind in RowKind}


class PrintStyle(Enum):
    """How a result is printed."""

    RAW = "raw"
    """The values alone."""
    BY_CONTENT = "by content"
    """A table that is as wide as its rows."""
    QUERY = "query"
    """A table whose widths follow from its types."""
    CHANGELOG = "changelog"
    """The same with the kinds of the rows."""


class ResultRows:
    """The rows of a result, in batches; closing them cancels their job."""

    def __init__(self, batches: Iterable[ColumnBatch]) -> None:
        self._source = batches
        self._batches = iter(batches)
        self._ahead: list[ColumnBatch] = []

    def __iter__(self) -> Iterator[ColumnBatch]:
        while self._ahead:
            yield self._ahead.pop(0)
        yield from self._batches

    def wait_for_first(self, timeout_s: float | None) -> None:
        """Returns when there is a row, or the last one has come."""
        if self._ahead:
            return

        def read() -> None:
            batch = next(self._batches, None)
            if batch is not None:
                self._ahead.append(batch)

        if timeout_s is None:
            read()
            return
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        thread.join(timeout_s)
        if thread.is_alive():
            raise TimeoutError("No row of the result has come in time.")

    def close(self) -> None:
        """Cancels the job behind the rows, if there is one that runs."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def progress(self) -> tuple[int, int] | None:
        """How many tasks have ended, of how many; None if that is not known."""
        progress: Callable[[], tuple[int, int] | None] | None = getattr(self._source, "progress", None)
        return None if progress is None else progress()


class CloseableIterator:
    """Iterates over the rows of a result; closing it early cancels the job behind it."""

    def __init__(self, rows: ResultRows) -> None:
        self._rows = rows
        self._iterator = _decoded(rows)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        return next(self._iterator)

    def next(self) -> Row:
        """The next row."""
        return next(self._iterator)

    def close(self) -> None:
        """Cancels the job unless it has ended."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()


def _decoded(rows: ResultRows) -> Iterator[Row]:
    for batch in rows:
        records: Iterable[Any] = ArrowRecords(batch.data.schema, as_tuples=True).decode(batch.data)
        if any(part.type.num_fields for part in batch.data.schema):
            records = ([_without_names(value) for value in record] for record in records)
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        for values, kind in zip(records, kinds, strict=True):
            row = Row(*values)
            if kind:
                row.set_row_kind(_KINDS[kind])
            yield row


def _without_names(value: Any) -> Any:
    """The value with rows in it that have positions only, as rows of results have in PyFlink."""
    if isinstance(value, Row):
        return Row(*map(_without_names, value))
    if isinstance(value, list):
        return [_without_names(part) for part in value]
    if isinstance(value, dict):
        return {_without_names(key): _without_names(part) for key, part in value.items()}
    return value


class TableResult:
    """The result of a statement: rows, and the job that computes them if there is one.

    Its rows are read once, by ``collect`` or by ``print``.
    """

    def __init__(
        self,
        schema: ResolvedSchema,
        rows: ResultRows,
        *,
        kind: ResultKind = ResultKind.SUCCESS_WITH_CONTENT,
        style: PrintStyle = PrintStyle.BY_CONTENT,
        job_client: JobClient | None = None,
        session: Session | None = None,
        max_width: int = 30,
    ) -> None:
        self._schema = schema
        self._rows = rows
        self._kind = kind
        self._style = style
        self._job_client = job_client
        self._session = session or Session()
        self._max_width = max_width

    @property
    def is_insert(self) -> bool:
        """Whether the job writes to tables, so that its result has no rows of its own."""
        return self._job_client is not None and self._style is PrintStyle.RAW

    def get_job_client(self) -> JobClient | None:
        """The client of the job; None if there is none."""
        return self._job_client

    def wait(self, timeout_ms: int | None = None) -> None:
        """Waits for the first row of a query, for the end of the job of an INSERT; others have ended."""
        timeout_s = timeout_ms / 1000 if timeout_ms else None
        self._rows.wait_for_first(timeout_s)

    def get_table_schema(self) -> TableSchema:
        """Names and types of the columns."""
        return TableSchema(self._schema.get_column_names(), self._schema.get_column_data_types())

    def get_resolved_schema(self) -> ResolvedSchema:
        """The columns."""
        return self._schema

    def get_result_kind(self) -> ResultKind:
        """Whether there is content besides ``OK``."""
        return self._kind

    def collect(self) -> CloseableIterator:
        """The rows with their kinds; the iterator of a query that has not ended has to be closed."""
        return CloseableIterator(self._rows)

    def texts(self, null: str = "<NULL>") -> Iterator[list[tuple[str, Sequence[str]]]]:
        """The rows in batches: the kind of each, such as ``+I``, and its values as text. Not in Flink."""
        row_type = self._schema.to_source_row_data_type()
        for batch in self._rows:
            kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
            rows = zip(*texts_of(batch, row_type, self._session, null), strict=True)
            yield [(str(_KINDS[kind]), row) for kind, row in zip(kinds, rows, strict=True)]

    def cancel(self) -> None:
        """Ends the job behind the rows, from any thread; whoever reads them finds their end. Not in Flink."""
        self._rows.close()

    def progress(self) -> tuple[int, int] | None:
        """How many tasks of a batch query have ended, of how many; None if that is not known. Not in Flink."""
        return self._rows.progress()

    @property
    def style(self) -> PrintStyle:
        """How the rows are printed."""
        return self._style

    def print(self) -> None:
        """Prints the rows as Flink's client does; Ctrl-C cancels the job."""
        try:
            self._print(sys.stdout.write)
        except KeyboardInterrupt:
            self._rows.close()
            raise
        finally:
            sys.stdout.flush()

    def _print(self, write: Callable[[str], Any]) -> None:
        row_type = self._schema.to_source_row_data_type()
        if self._style is PrintStyle.RAW:
            for batch in self._rows:
                for row in zip(*texts_of(batch, row_type, self._session, "<NULL>"), strict=True):
                    write(", ".join(row) + "\n")
            return
        by_content = self._style is PrintStyle.BY_CONTENT
        printer = TableauPrinter(
            row_type,
            self._session,
            with_kind=self._style is PrintStyle.CHANGELOG,
            by_content=by_content,
            max_width=self._max_width,
            null="" if by_content else "<NULL>",
        )
        printer.print(self._rows, write)


def rows_of(row_type: RowType, rows: Sequence[Sequence[Any]]) -> ResultRows:
    """Rows that are there already."""
    return ResultRows([batch_of(rows, row_type)] if rows else [])


def strings(names: Sequence[str], rows: Sequence[Sequence[str | None]], style: PrintStyle | None = None) -> TableResult:
    """A result of texts."""
    schema = ResolvedSchema.physical(names, [VarCharType() for _ in names])
    rows_type = schema.to_physical_row_data_type()
    return TableResult(schema, rows_of(rows_type, rows), style=style or PrintStyle.BY_CONTENT)


def ok() -> TableResult:
    """The result of a statement without content."""
    schema = ResolvedSchema.physical(["result"], [VarCharType()])
    rows = rows_of(schema.to_physical_row_data_type(), [("OK",)])
    return TableResult(schema, rows, kind=ResultKind.SUCCESS, style=PrintStyle.RAW)
