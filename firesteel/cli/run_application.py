"""``firesteel run-application``: a cluster for one program, which runs in the JobManager itself."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.terminal.job_manager import add_jobmanager_options, jobmanager_settings, start_and_report
from firesteel.cli.terminal.settings import add_program_options, program_settings
from firesteel.client.errors import UsageError

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "run-application",
        help="run a program in a cluster of its own",
        description="Starts a JobManager that runs the program and exits when its jobs have ended. If it is lost or "
        "stopped, run the same command with --id and the printed id to resume from the last checkpoint. Exit "
        "codes: 0 once it is started, or with --foreground when its jobs have finished; 1 if it cannot be "
        "started or a job failed or was cancelled.",
    )
    add_jobmanager_options(parser)
    add_program_options(parser, settings=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Starts a JobManager that runs a program, in the background or in the foreground; returns the exit code."""
    from pathlib import Path

    from firesteel.client.cluster_processes import starting
    from firesteel.client.local_clusters import local_cluster
    from firesteel.client.program import find_program
    from firesteel.client.program_files import program_files
    from firesteel.config import cluster_options

    settings = {**program_settings(options), **jobmanager_settings(options)}
    settings.setdefault(cluster_options.CLUSTER_ID.key, _application_id(options))
    if options.module is None:
        find_program(options.program)  # before anything is made for it
    cluster = local_cluster(settings)
    kept = cluster.directory / "pyfs"
    with starting(cluster), program_files(options.python_files, into=kept) as files:
        running = cluster.job_managers()
        if running:
            raise UsageError(
                f"The cluster '{cluster.cluster_id}' is already running: {running[0].url}.",
                hint="Stop it first, or choose another id with --id.",
            )
        program = find_program(options.program, options.module, files.search_path)
        beside = str(Path.cwd() if options.module else Path(program).parent)
        told = {
            "mode": "application",
            "program": program,
            "module": options.module,
            "arguments": list(options.arguments),
            "configuration": settings,
        }
        return start_and_report(options, cluster, told, [beside, *files.search_path])


def _application_id(options: argparse.Namespace) -> str:
    """A new id for every run: a run with the id of an earlier run resumes the jobs of that run."""
    import re
    import uuid
    from pathlib import Path

    name = options.module or Path(options.program).stem
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '-', name).lstrip('.-') or 'application'}-{uuid.uuid4().hex[:8]}"
