"""``firesteel run``: runs a program with the settings of the command line; its jobs run here or on a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from firesteel.cli import info
from firesteel.cli.terminal.connection import connect, find_cluster
from firesteel.cli.terminal.progress import TerminalProgress, say
from firesteel.cli.terminal.settings import add_cluster_options, add_program_options, program_settings
from firesteel.client.errors import UsageError
from firesteel.common.errors import FiresteelError

if TYPE_CHECKING:
    from types import FrameType

    from firesteel.client.connection import ClusterAddress
    from firesteel.client.program_files import ProgramFiles
    from firesteel.client.remote_executor import RemoteExecutor
    from firesteel.datastream.executor import PipelineExecutor

__all__ = ["ProgramWithoutJobError", "register", "run"]

EXIT_CODE_INTERRUPTED = 130


class ProgramWithoutJobError(FiresteelError):
    """A program that ended without an error but submitted no job."""


class _Interrupted(BaseException):
    """Ctrl-C: ends the program. Unlike KeyboardInterrupt, it does not make execute() cancel the job."""


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program",
        description="Runs a program in this process, as python does. The options are defaults for the program's "
        "environments; settings made by the program take precedence. Its jobs run on the given cluster or on "
        "the cluster on this machine; without a cluster, on a Spark embedded in this process. Exit codes: "
        "that of the program; 1 if a job or the program fails, 2 if it cannot be started, 3 if the cluster "
        "does not respond, 130 after Ctrl-C, which cancels an embedded job but not a job on a cluster.",
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the plan of the program's first job without running it"
    )
    parser.add_argument(
        "-d", "--detached", action="store_true", help="on a cluster: submit the jobs and do not wait until they end"
    )
    parser.add_argument(
        "-sae",
        "--shutdownOnAttachedExit",
        "--shutdown-on-attached-exit",
        dest="cancel_on_exit",
        action="store_true",
        help="on a cluster: Ctrl-C cancels the job",
    )
    parser.add_argument(
        "-t", "--target", choices=("local", "remote"), help="local: in this process; remote: on a cluster, or fail"
    )
    parser.add_argument("--embedded", action="store_true", help="the same as -t local")
    add_program_options(parser, settings=False)
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the program; its exit code."""
    if options.explain:
        return info.show(options, "text")
    from firesteel.client.program_files import program_files
    from firesteel.datastream.executor import context_executor

    if options.pyflink:
        import firesteel.pyflink  # noqa: F401
    settings = program_settings(options)
    local = options.embedded or options.target == "local"
    if local and (options.jobmanager is not None or options.target == "remote"):
        raise UsageError("Conflicting options: one runs the job in this process, the other on a cluster.")
    cluster = None
    if options.target == "remote":
        cluster = connect(options)
    elif not local and context_executor() is None:
        cluster = find_cluster(options)
    with program_files(options.python_files) as files:
        if cluster is not None:
            return _run_on_cluster(options, settings, cluster, files)
        if options.detached:
            raise UsageError(
                "Detached mode requires a cluster: an embedded job ends with this process.",
                hint="Start a cluster with firesteel cluster start, or specify one with -m HOST:PORT.",
            )
        from firesteel.client.resuming_executor import ResumingExecutor

        return _run_program(options, settings, ResumingExecutor(context_executor(), say), files)


def _run_program(
    options: argparse.Namespace, settings: Mapping[str, str], executor: PipelineExecutor, files: ProgramFiles
) -> int:
    from firesteel.client.program import run_program

    path = files.search_path
    return run_program(options.program, options.arguments, settings, executor, search_path=path, module=options.module)


def _run_on_cluster(
    options: argparse.Namespace, settings: Mapping[str, str], cluster: ClusterAddress, files: ProgramFiles
) -> int:
    """Runs the program in this process and its jobs on the cluster; returns the exit code."""
    from firesteel.client.job_watch import JobWatch
    from firesteel.client.remote_executor import RemoteExecutor
    from firesteel.rest.cluster import CLUSTER_OVERVIEW

    progress = TerminalProgress(quiet=options.detached)
    with cluster.client() as client, JobWatch(client, progress, quiet=options.detached) as watch:
        client.call(CLUSTER_OVERVIEW)  # a cluster that does not answer is better known before the program runs

        def submitted(job_id: str, job_name: str) -> None:
            if options.detached:
                print(f"Job has been submitted with JobID {job_id}", flush=True)  # noqa: T201
            else:
                watch.submitted(job_id, job_name)

        executor = RemoteExecutor(
            client,
            search_path=files.search_path,
            detached=options.detached,
            heartbeat=options.cancel_on_exit and not options.detached,
            on_submit=submitted,
            on_status=watch.status_changed,
        )
        try:
            with _interruptible(not options.cancel_on_exit):
                code = _run_program(options, settings, executor, files)
        except _Interrupted:
            watch.close()
            _say_what_goes_on(executor)
            return EXIT_CODE_INTERRUPTED
        finally:
            executor.close()
    if code == 0 and not executor.jobs:
        raise ProgramWithoutJobError(
            f"{options.program} ended without submitting a job.",
            hint="A program must call env.execute(). If the call depends on arguments, pass them after the "
            "program's name.",
        )
    return code


@contextmanager
def _interruptible(replaced: bool) -> Iterator[None]:
    """Makes Ctrl-C raise _Interrupted within the context."""
    import signal
    import threading

    if not replaced or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise _Interrupted

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _say_what_goes_on(executor: RemoteExecutor) -> None:
    from firesteel.client.jobs import ENDED

    sys.stderr.write("\n")
    for job in executor.jobs:
        with suppress(FiresteelError):
            if job.status().name not in ENDED:
                say(f"job '{job.job_name}' continues to run. To cancel it: firesteel cancel {job.job_id()}")
