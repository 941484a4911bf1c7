"""``firesteel sql``: an interactive SQL shell, and SQL scripts."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import connect, find_cluster
from firesteel.cli.terminal.settings import add_cluster_options, check_settings, settings_of
from firesteel.client.errors import UsageError
from firesteel.common.errors import FiresteelError, FiresteelWarning

if TYPE_CHECKING:
    from firesteel.cli.sql.execution.result import Executor
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]

_NO_TERMINAL = "Give a file with -f FILE, or statements with -e SQL."


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "sql",
        help="execute SQL statements, or open the SQL shell",
        description="Opens an interactive SQL shell, or executes the statements of -f and -e one after the other; then "
        "the first one that fails ends the command, and an INSERT is waited for. Jobs run on the given cluster or on "
        "the cluster on this machine; without a cluster, on a Spark embedded in this process. Exit codes: 0, 1 if a "
        "statement fails, 2 after wrong options, 3 if the cluster does not respond, 130 after Ctrl-C.",
    )
    parser.add_argument(
        "mode",
        nargs="?",
        choices=("embedded", "gateway"),
        help="embedded: execute statements in this process, the default; gateway: in a SQL gateway, given by -e or "
        "--endpoint",
    )
    parser.add_argument("-f", "--file", metavar="FILE", help="execute the statements of a file; - is standard input")
    parser.add_argument(
        "-e",
        "--execute",
        metavar="SQL",
        help="execute these statements, after those of the file; after the mode gateway, its address as HOST:PORT",
    )
    parser.add_argument("-i", "--init", metavar="FILE", help="execute the statements of a file first, without output")
    parser.add_argument("-s", "--session", metavar="ID", default="default", help="the name of the session")
    parser.add_argument(
        "-hist", "--history", metavar="FILE", help="the file of the history; default: ~/.firesteel-sql-history"
    )
    parser.add_argument("-u", "--update", metavar="SQL", help="execute an INSERT; as -e")
    parser.add_argument("-j", "--jar", metavar="FILE", action="append", help=argparse.SUPPRESS)
    parser.add_argument("-l", "--library", metavar="DIRECTORY", action="append", help=argparse.SUPPRESS)
    parser.add_argument(
        "--gateway",
        "--endpoint",
        dest="gateway",
        metavar="HOST:PORT",
        help="execute the statements in a SQL gateway, over its REST API",
    )
    parser.add_argument("--embedded", action="store_true", help="run jobs in this process, although there is a cluster")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Executes the statements, 0 if all succeed; without any, opens the shell."""
    _check(options)
    texts = [_read(options.file)] if options.file else []
    texts += [text for text in (options.update, options.execute) if text]
    if not texts and not sys.stdin.isatty():
        raise UsageError("There are no statements, and no terminal for the shell.", hint=_NO_TERMINAL)
    settings = settings_of(options)
    check_settings(settings)
    init = _read(options.init) if options.init else None
    with _plain_warnings(), ExitStack() as stack:
        create, place = _creator(options, settings, stack)
        if not texts:
            return _open_shell(options, create, place, init)
        executor = create()
        stack.callback(executor.close)
        return _run_scripts(executor, texts, init)


def _check(options: argparse.Namespace) -> None:
    if options.jar or options.library:
        raise UsageError(
            "Jars cannot be added: connectors and functions of Firesteel are Python.",
            hint="Install Python packages in the environment, or add files with -D python.files=FILE.",
        )
    if options.mode == "gateway" and options.gateway is None:
        options.gateway, options.execute = options.execute, None
        if options.gateway is None:
            raise UsageError("The address of the gateway is missing.", hint="firesteel sql gateway -e HOST:PORT")
    if options.embedded and (options.jobmanager is not None or options.gateway is not None):
        raise UsageError("Conflicting options: one runs the jobs in this process, the other on a cluster.")
    if options.gateway is not None and options.jobmanager is not None:
        raise UsageError("Conflicting options: a gateway knows its own cluster.", hint="Leave out -m.")


def _run_scripts(executor: Executor, texts: list[str], init: str | None) -> int:
    from firesteel.cli.sql.printing import Printer
    from firesteel.cli.sql.session import Quit, SqlSession

    _initialize(executor, init)
    session = SqlSession(executor, Printer(), is_script=True)
    try:
        for text in texts:
            session.run(text)
    except Quit:
        return 0
    if executor.in_statement_set():
        raise FiresteelError("The statement set has no END.", hint="Write END; after its last INSERT.")
    return 0


def _open_shell(options: argparse.Namespace, create: Callable[[], Executor], place: str, init: str | None) -> int:
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        raise UsageError(
            "The shell needs prompt_toolkit.", hint=f"pip install 'firesteel[sql]'. {_NO_TERMINAL}"
        ) from None
    from firesteel.cli.sql.shell import Shell, default_history

    history = Path(options.history).expanduser() if options.history else default_history()
    if init is None and options.gateway is None:
        return Shell(create, history, place).run()
    executor = create()  # errors of these end the command
    try:
        _initialize(executor, init)
    except BaseException:
        executor.close()
        raise
    return Shell(lambda: executor, history, place).run()


def _initialize(executor: Executor, init: str | None) -> None:
    import io

    from firesteel.cli.sql.printing import Printer
    from firesteel.cli.sql.session import SqlSession

    if init is not None:
        SqlSession(executor, Printer(io.StringIO()), is_script=True).run(init)


def _creator(
    options: argparse.Namespace, settings: dict[str, str], stack: ExitStack
) -> tuple[Callable[[], Executor], str]:
    """What creates the executor, and where it runs jobs."""
    if options.gateway is not None:

        def create_remote() -> Executor:
            from firesteel.cli.sql.execution.gateway import GatewayExecutor
            from firesteel.config import table_options

            is_script = bool(options.file or options.execute or options.update)
            waiting = {table_options.DML_SYNC.key: "true"} if is_script else {}
            return GatewayExecutor.open(options.gateway, options.session, {**waiting, **settings})

        return create_remote, f"connected to the SQL gateway {options.gateway}"
    client = _cluster_client(options, stack)

    def create() -> Executor:
        from firesteel.cli.sql.execution.cluster_jobs import ClusterJobs
        from firesteel.cli.sql.execution.embedded import EmbeddedExecutor
        from firesteel.config.configuration import Configuration
        from firesteel.datastream.executor import execution_context

        remote = None
        if client is not None:
            from firesteel.client.remote_executor import RemoteExecutor

            remote = RemoteExecutor(client)
            stack.callback(remote.close)
        stack.enter_context(execution_context(Configuration.from_dict(settings), remote))
        return EmbeddedExecutor(settings, None if client is None else ClusterJobs(client))

    return create, "jobs run in this process" if client is None else f"jobs run on {client.url}"


def _cluster_client(options: argparse.Namespace, stack: ExitStack) -> ClusterClient | None:
    """The cluster that runs the jobs; None if they run in this process."""
    if options.jobmanager is not None:
        cluster = connect(options)
    elif options.embedded or _has_executor():
        return None
    else:
        found = find_cluster(options)
        if found is None:
            return None
        cluster = found
    return stack.enter_context(cluster.client())


def _has_executor() -> bool:
    from firesteel.datastream.executor import context_executor

    return context_executor() is not None


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings of statements without the line of code, which is not the user's."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, FiresteelWarning):
                sys.stderr.write(f"firesteel: warning: {message}\n")
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from None
