"""``firesteel run``: runs a program with the settings of the command line; its jobs run here or on a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli import info
from firesteel.cli.settings import add_cluster_options, add_program_options, program_settings

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "run",
        help="run a program",
        description="Runs a program in this process, as python would, with the options as defaults of its "
        "environments: what the program itself sets wins. Its jobs run on the cluster that is named or that runs on "
        "this machine; if there is none, on a Spark that is embedded in this process. Exit codes: that of the program; "
        "1 if a job or the program fails, 2 if it cannot be started, 3 if the cluster does not answer, 130 after "
        "Ctrl-C, which cancels an embedded job and leaves one on a cluster alone.",
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the plan of the program's first job and run nothing"
    )
    parser.add_argument(
        "-d", "--detached", action="store_true", help="on a cluster: do not wait for the jobs, only submit them"
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
    from firesteel.cli.connection import connect, find_cluster
    from firesteel.cli.errors import CommandError
    from firesteel.cli.program import run_program
    from firesteel.cli.program_files import program_files
    from firesteel.datastream.executor import context_executor

    settings = program_settings(options)
    local = options.embedded or options.target == "local"
    if local and (options.jobmanager is not None or options.target == "remote"):
        raise CommandError("The job is to run in this process and on a cluster: leave out one of both.")
    cluster = None
    if options.target == "remote":
        cluster = connect(options)
    elif not local and context_executor() is None:
        cluster = find_cluster(options)
    with program_files(options.python_files) as files:
        if cluster is not None:
            from firesteel.cli.remote_run import run_on_cluster

            return run_on_cluster(options, settings, cluster, files)
        if options.detached:
            raise CommandError(
                "Only a job on a cluster can be detached: one that is embedded ends with this process.",
                hint="Start a cluster with firesteel cluster start, or name one with -m HOST:PORT.",
            )
        from firesteel.cli.resuming import ResumingExecutor

        return run_program(
            options.program,
            options.arguments,
            settings,
            ResumingExecutor(context_executor()),
            search_path=files.search_path,
            module=options.module,
        )
