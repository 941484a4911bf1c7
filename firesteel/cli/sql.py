"""``firesteel sql``: executes SQL statements of a file or of the command line."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import connect, find_cluster
from firesteel.cli.terminal.settings import add_cluster_options, check_settings, settings_of
from firesteel.client.errors import UsageError
from firesteel.common.errors import FiresteelWarning

if TYPE_CHECKING:
    from firesteel.datastream.executor import PipelineExecutor

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "sql",
        help="execute SQL statements",
        description="Executes statements separated by semicolons, one after the other, and prints their results. The "
        "first one that fails ends the command. An INSERT is waited for. Jobs run on the given cluster or on the "
        "cluster on this machine; without a cluster, on a Spark embedded in this process. Exit codes: 0, 1 if a "
        "statement fails, 2 if there is none, 3 if the cluster does not respond, 130 after Ctrl-C.",
    )
    parser.add_argument("-f", "--file", metavar="FILE", help="execute the statements of a file; - is standard input")
    parser.add_argument("-e", "--execute", metavar="SQL", help="execute these statements; after those of the file")
    parser.add_argument("-i", "--init", metavar="FILE", help="execute the statements of a file first, without output")
    parser.add_argument("--embedded", action="store_true", help="run jobs in this process, although there is a cluster")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Executes the statements; 0 if all succeed."""
    texts = [_read(options.file)] if options.file else []
    texts += [options.execute] if options.execute else []
    if not texts:
        raise UsageError("There are no statements.", hint="Give a file with -f FILE, or statements with -e SQL.")
    settings = settings_of(options)
    check_settings(settings)
    with _plain_warnings(), _executor(options) as executor:
        from firesteel.config.configuration import Configuration
        from firesteel.datastream.executor import execution_context
        from firesteel.table import EnvironmentSettings, TableEnvironment
        from firesteel.table.environment.script import run_script

        configuration = Configuration.from_dict(settings)
        with execution_context(configuration, executor):
            chosen = EnvironmentSettings.new_instance().with_configuration(configuration).build()
            environment = TableEnvironment.create(chosen)
            if options.init:
                run_script(environment, _read(options.init), lambda _: None)
            for text in texts:
                run_script(environment, text, _write)
    return 0


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


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from None


@contextmanager
def _executor(options: argparse.Namespace) -> Iterator[PipelineExecutor | None]:
    """What runs the jobs: a cluster, or what this process has."""
    from firesteel.datastream.executor import context_executor

    if options.embedded and options.jobmanager is not None:
        raise UsageError("Conflicting options: one runs the jobs in this process, the other on a cluster.")
    cluster = None
    if options.jobmanager is not None:
        cluster = connect(options)
    elif not options.embedded and context_executor() is None:
        cluster = find_cluster(options)
    if cluster is None:
        yield context_executor()
        return
    from firesteel.client.remote_executor import RemoteExecutor

    with cluster.client() as client:
        executor = RemoteExecutor(client)
        try:
            yield executor
        finally:
            executor.close()
