"""The interactive shell: reads statements from a terminal."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel import __version__
from firesteel.cli.sql.help import welcome

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples

    from firesteel.cli.sql.execution.result import Executor, StatementResult
    from firesteel.cli.sql.session import SqlSession
    from firesteel.config.configuration import Configuration

__all__ = ["Shell", "default_history"]

_PROMPT = "Firesteel SQL> "
_CONTINUATION = "> "


def default_history() -> Path:
    """The file of the history."""
    return Path.home() / ".firesteel-sql-history"


class Shell:
    """Reads statements until QUIT or the end of the input.

    The prompt appears at once; ``create_executor`` is called in a thread meanwhile, since loading the SQL engine takes
    longer than to write a statement. ``terminal`` is the input and the output, if not those of the process.
    """

    def __init__(
        self,
        create_executor: Callable[[], Executor],
        history: Path | None,
        place: str,
        init: Callable[[Executor], None] = lambda _: None,
        **terminal: Any,
    ) -> None:
        self._history = history
        self._place = place
        self._terminal = terminal
        self._loading = _Loading(create_executor, init)
        self._configuration: Configuration | None = None

    def run(self) -> int:
        """Returns the exit code."""
        editor = self._editor()
        editor.output.write_raw(welcome(__version__, self._place, str(self._history or "none")).replace("\n", "\r\n"))
        editor.output.flush()
        self._loading.start()
        session: SqlSession | None = None
        try:
            while True:
                try:
                    text = editor.prompt()
                except KeyboardInterrupt:
                    if self._loading.is_ready and self._loading.executor().in_statement_set():
                        self._loading.executor().leave_statement_set()
                        self._say("[INFO] The statement set is forgotten.")
                    continue
                except EOFError:
                    break
                session = session or self._session()
                if not self._execute(session, text):
                    break
        finally:
            self._close()
        return 0

    def _execute(self, session: SqlSession, text: str) -> bool:
        """Executes statements; False if they end the shell."""
        from firesteel.cli.sql.session import Quit

        try:
            session.run_shown(text)
        except Quit:
            return False
        finally:
            self._loading.names().forget()
            self._configuration = session.configuration()
        if text.strip():
            self._say("")
        return True

    def _session(self) -> SqlSession:
        from firesteel.cli.sql.printing import Printer
        from firesteel.cli.sql.session import SqlSession

        printer = Printer(self._terminal.get("stdout"))
        width = lambda: shutil.get_terminal_size().columns
        return SqlSession(self._loading.executor(), printer, show=self._show, width=width)

    def _show(self, result: StatementResult, _: str, options: Configuration) -> None:
        """Shows a query on the whole screen."""
        from firesteel.cli.sql.execution.feed import Feed
        from firesteel.cli.sql.views.result_view import ChangelogView, ResultView, TableView
        from firesteel.cli.sql.views.screen import show_on_screen
        from firesteel.config import table_options

        feed, width = Feed(result.rows), options.get(table_options.MAX_COLUMN_WIDTH)
        view: ResultView
        if options.get(table_options.RESULT_MODE) == "CHANGELOG":
            view = ChangelogView(result, feed, width)
        else:
            view = TableView(result, feed, options.get(table_options.MAX_TABLE_RESULT_ROWS), width)
        streams = {name: value for name, value in self._terminal.items() if name in ("input", "output")}
        try:
            show_on_screen(view, **streams)
        finally:
            if not view.is_finished:
                feed.cancel()
        if view.error is not None:
            raise view.error
        self._say("[INFO] Table program finished." if view.is_finished else "[INFO] Result retrieval cancelled.")

    def _say(self, line: str) -> None:
        from firesteel.cli.sql.printing import Printer

        printer = Printer(self._terminal.get("stdout"))
        if line.startswith("[INFO] "):
            printer.info(line.removeprefix("[INFO] "))
        else:
            printer.write(line + "\n")

    def _close(self) -> None:
        if not self._loading.is_ready:
            self._loading.wait()  # what it starts must be ended
        executor = self._loading.executor_or_none()
        if executor is None:
            return
        ended = executor.jobs_that_end()
        if ended:
            self._say(f"[INFO] Cancelling jobs that run in this process: {', '.join(ended)}")
        executor.close()

    # -- the editor --------------------------------------------------------------------------------------------

    def _editor(self) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import ThreadedCompleter
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
        from prompt_toolkit.styles import DynamicStyle

        from firesteel.cli.sql.editor import SqlCompleter, SqlLexer, style_of

        bindings = KeyBindings()

        @bindings.add("enter", filter=Condition(lambda: not _is_completing(editor)))
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if self._is_complete(buffer.text):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        @bindings.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        def continuation(width: int, number: int, _: int) -> StyleAndTextTuples:
            shown = f"{number + 1:>2} {_CONTINUATION}" if self._shows_numbers() else _CONTINUATION
            return [("", shown.rjust(width))]

        history = InMemoryHistory() if self._history is None else FileHistory(str(_writable(self._history)))
        editor: PromptSession[str] = PromptSession(
            _PROMPT,
            multiline=True,
            key_bindings=bindings,
            history=history,
            lexer=SqlLexer(lambda: self._loading.is_ready),
            completer=ThreadedCompleter(SqlCompleter(self._loading.names_or_none)),
            complete_while_typing=False,
            prompt_continuation=continuation,
            style=DynamicStyle(lambda: style_of(self._color_schema())),
            enable_history_search=True,
            **{name: value for name, value in self._terminal.items() if name in ("input", "output")},
        )
        return editor

    def _is_complete(self, text: str) -> bool:
        self._loading.wait()
        from firesteel.cli.sql.editing.statements import is_complete

        return is_complete(text)

    def _shows_numbers(self) -> bool:
        from firesteel.config import table_options

        return self._configuration is not None and self._configuration.get(table_options.SHOW_LINE_NUMBERS)

    def _color_schema(self) -> str | None:
        """The colors; None while keywords are not known yet."""
        if not self._loading.is_ready:
            return None
        from firesteel.config import table_options
        from firesteel.config.configuration import Configuration

        if self._configuration is None:
            self._configuration = Configuration.from_dict(dict(self._loading.executor().options()))
        return self._configuration.get(table_options.COLOR_SCHEMA)


def _is_completing(editor: PromptSession[str]) -> bool:
    state = editor.default_buffer.complete_state
    return state is not None and state.current_completion is not None


def _writable(history: Path) -> Path:
    """The file of the history, which only its owner reads: statements may contain passwords."""
    history.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(history, os.O_CREAT | os.O_APPEND, 0o600))
    return history


class _Loading:
    """Loads the SQL engine in a thread."""

    def __init__(self, create: Callable[[], Executor], init: Callable[[Executor], None]) -> None:
        self._create = create
        self._init = init
        self._executor: Executor | None = None
        self._names: Any = None
        self._error: BaseException | None = None
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._load, name="firesteel-sql-loading", daemon=True)
        self._thread.start()

    def _load(self) -> None:
        try:
            from firesteel.cli.sql.editing.names import SessionNames

            executor = self._create()
            self._executor = executor
            self._init(executor)
            self._names = SessionNames(executor.ask)
        except BaseException as error:  # noqa: BLE001 - raised where the executor is needed
            self._error = error
        finally:
            self._is_over.set()

    @property
    def is_ready(self) -> bool:
        return self._is_over.is_set()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def executor(self) -> Executor:
        self.wait()
        if self._error is not None:
            raise self._error
        assert self._executor is not None
        return self._executor

    def executor_or_none(self) -> Executor | None:
        return self._executor if self.is_ready else None

    def names(self) -> Any:
        self.wait()
        return self._names

    def names_or_none(self) -> Any:
        return self._names if self.is_ready else None
