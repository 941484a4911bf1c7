"""Executes the statements of a text and prints their results: what the shell and scripts have in common."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from firesteel.cli.sql.editing.statements import command_of
from firesteel.cli.sql.execution.feed import Feed
from firesteel.cli.sql.execution.result import Executor, ResultKind, StatementResult
from firesteel.cli.sql.help import help_text
from firesteel.cli.sql.plan_drawing import draw_plan, section_of
from firesteel.cli.sql.printing import Printer
from firesteel.common.errors import FiresteelError
from firesteel.config import table_options
from firesteel.config.configuration import Configuration
from firesteel.table.parser import SqlParserException
from firesteel.table.parser.scripts import split_script
from firesteel.table.parser.statements.base import Source

__all__ = ["Quit", "SqlSession"]


Show = Callable[[StatementResult, str, Configuration], None]

_POLL_S = 0.1
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class Quit(Exception):
    """The statement ends the shell."""


class SqlSession:
    """Executes statements, one after the other.

    ``show`` shows a query in the result mode; without it all are printed. ``is_script`` waits for INSERT statements.
    ``width`` is that of the terminal.
    """

    def __init__(
        self,
        executor: Executor,
        printer: Printer,
        *,
        show: Show | None = None,
        is_script: bool = False,
        width: Callable[[], int] = lambda: 100,
    ) -> None:
        self.executor = executor
        self._printer = printer
        self._show = show
        self._is_script = is_script
        self._width = width

    def run(self, text: str) -> None:
        """Executes the statements of a text until one fails; raises its error."""
        try:
            sources = list(split_script(text))
        except SqlParserException as error:
            raise FiresteelError(str(error)) from error
        for source in sources:
            self.execute(source)

    def run_shown(self, text: str) -> bool:
        """Executes the statements of a text and prints the error of one that fails; False after an error."""
        try:
            self.run(text)
        except Quit:
            raise
        except KeyboardInterrupt:
            self._printer.info("Statement cancelled.")
            return False
        except Exception as error:  # noqa: BLE001 - the shell goes on
            self._printer.error(self.reason(error))
            return False
        return True

    def reason(self, error: BaseException) -> str:
        """What is said about an error."""
        if self.configuration().get(table_options.VERBOSE):
            return "".join(traceback.format_exception(error)).rstrip()
        return str(error) if isinstance(error, FiresteelError) else f"{type(error).__name__}: {error}"

    def configuration(self) -> Configuration:
        """The options of the session."""
        return Configuration.from_dict(dict(self.executor.options()))

    def execute(self, source: Source) -> None:
        """Executes a statement and shows its result."""
        match command_of(source.text):
            case "QUIT":
                raise Quit
            case "HELP":
                self._printer.write(help_text())
                return
            case "CLEAR":
                if self._printer.output.isatty():
                    self._printer.write(_CLEAR)
                return
        started = self._printer.now()
        result = self._waiting_for(lambda: self.executor.execute(source))
        match result.kind:
            case ResultKind.OK:
                self._printer.info("Execute statement succeeded.")
            case ResultKind.CONTENT:
                self._content(result, source.text)
            case ResultKind.INSERT:
                self._insert(result)
            case ResultKind.QUERY:
                options = self.configuration()
                if self._show is not None and options.get(table_options.RESULT_MODE) != "TABLEAU":
                    self._show(result, source.text, options)
                else:
                    width, is_timed = options.get(table_options.MAX_COLUMN_WIDTH), table_options.PRINT_TIME_COST
                    self._print(result, width, started if options.get(is_timed) else None)

    def _print(self, result: StatementResult, width: int, started: float | None) -> None:
        try:
            self._printer.query(result, width, started)
        except KeyboardInterrupt:
            if self._is_script:
                raise

    def _content(self, result: StatementResult, statement: str) -> None:
        if self._show is not None and statement.lstrip()[:7].upper() == "EXPLAIN":
            text = "".join(row[0] for batch in result.rows.batches() for _, row in batch)
            section = section_of(text)
            if section is not None and not self.configuration().get(table_options.VERBOSE):
                self._printer.write(f"== {section[0]} ==\n{draw_plan(section[1], self._width())}\n")
                return
            self._printer.write(text.rstrip() + "\n")
            return
        self._printer.content(result)

    def _insert(self, result: StatementResult) -> None:
        waits = self._is_script or self.configuration().get(table_options.DML_SYNC)
        self._printer.info("Submitting SQL update statement to the cluster...")
        if not waits:
            self._printer.info("SQL update statement has been successfully submitted to the cluster:")
        self._printer.write(f"Job ID: {result.job_id}\n")
        if not waits:
            return
        feed = Feed(result.rows)
        progress = self._printer.progress()
        try:
            while feed.take(_POLL_S) is not None:
                progress.show(feed.progress())
        except KeyboardInterrupt:
            progress.clear()
            if self._is_script:
                raise
            feed.cancel()
            raise
        finally:
            progress.clear()
        self._printer.info("Complete execution of the SQL update statement.")

    def _waiting_for(self, call: Callable[[], StatementResult]) -> StatementResult:
        """Calls in a thread, so that Ctrl-C does not leave a job that is being started half started."""
        outcome: list[StatementResult | BaseException] = []
        is_abandoned = threading.Event()

        def run() -> None:
            try:
                outcome.append(call())
            except BaseException as error:  # noqa: BLE001 - raised below
                outcome.append(error)
            if is_abandoned.is_set() and isinstance(outcome[0], StatementResult):
                outcome[0].rows.cancel()

        thread = threading.Thread(target=run, name="firesteel-sql-statement", daemon=True)
        thread.start()
        progress = self._printer.progress()
        try:
            while thread.is_alive():
                thread.join(_POLL_S)
                if thread.is_alive():
                    progress.show()
        except KeyboardInterrupt:
            is_abandoned.set()
            raise
        finally:
            progress.clear()
        (found,) = outcome
        if isinstance(found, BaseException):
            raise found
        return found
