"""``firesteel logs``: lists and prints the logs of a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import bytes_text, local_time, print_result, table
from firesteel.cli.terminal.settings import add_cluster_options, positive
from firesteel.common.errors import FiresteelError
from firesteel.config.redaction import printable

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["LogNotFoundError", "register", "run"]

JOB_MANAGER = "jobmanager"
TASK_MANAGER = "taskmanager"


class LogNotFoundError(FiresteelError):
    """There is no such process."""


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "logs",
        help="show the logs of a cluster",
        description="Lists the log files of the JobManager and the TaskManagers, or prints one: firesteel logs "
        "jobmanager, firesteel logs taskmanager --stdout, firesteel logs jobmanager NAME. With --job, prints what the "
        "functions of a job have logged. Exit codes: 0, 1 if the log does not exist, 3 if no cluster responds.",
    )
    parser.add_argument(
        "process",
        metavar="PROCESS",
        nargs="?",
        help="jobmanager, a TaskManager id, or taskmanager if there is only one",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the log; default: the main log")
    parser.add_argument(
        "--stdout", action="store_true", help="show standard output, for example of print() calls in functions"
    )
    parser.add_argument("--job", metavar="JOB", help="show what the functions of a job have logged: id or name")
    parser.add_argument("--level", metavar="LEVEL", default="DEBUG", help="with --job: minimum level (default: DEBUG)")
    parser.add_argument("--task", metavar="TEXT", default="", help="with --job: only of tasks like TEXT, such as (1/2)")
    parser.add_argument("-n", "--lines", metavar="N", type=positive, help="show only the last N lines")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Lists log files, or prints one."""
    from firesteel.rest import cluster as jm
    from firesteel.rest import task_managers as tm

    if options.job is not None:
        return _job_log(options, client)
    if options.process is None:
        return _list(options, client)
    path: dict[str, str] = {}
    main, stdout, named = jm.JOBMANAGER_LOG, jm.JOBMANAGER_STDOUT, jm.JOBMANAGER_LOG_FILE
    if options.process != JOB_MANAGER:
        path = {"taskmanagerid": _find(client, options.process)}
        main, stdout, named = tm.TASK_MANAGER_LOG, tm.TASK_MANAGER_STDOUT, tm.TASK_MANAGER_LOG_FILE
    if options.name is not None:
        text: str = client.call(named, {**path, "filename": options.name})
    else:
        text = client.call(stdout if options.stdout else main, path)
    return _print(options, {"process": options.process, "name": options.name}, text)


def _job_log(options: argparse.Namespace, client: ClusterClient) -> int:
    from firesteel.client.jobs import find_job
    from firesteel.rest.job_logs import JOB_LOG

    job = find_job(client, options.job)
    query = {"level": options.level, "task": options.task}
    return _print(options, {"job": job.jid}, client.call(JOB_LOG, {"jobid": job.jid}, query))


def _print(options: argparse.Namespace, what: dict[str, Any], text: str) -> int:
    if options.lines is not None:
        text = "\n".join(text.splitlines()[-options.lines :])
    print_result({**what, "text": text}, printable(text.rstrip("\n")), as_json=options.json)
    return 0


def _list(options: argparse.Namespace, client: ClusterClient) -> int:
    from firesteel.rest import cluster as jm
    from firesteel.rest import task_managers as tm

    found = {JOB_MANAGER: client.call(jm.JOBMANAGER_LOGS).logs}
    for manager in client.call(tm.TASK_MANAGERS).taskmanagers:
        found[manager.id] = client.call(tm.TASK_MANAGER_LOGS, {"taskmanagerid": manager.id}).logs
    rows = [
        [process, log.name, bytes_text(log.size), local_time(log.mtime)]
        for process, logs in found.items()
        for log in logs
    ]
    lines = table(["process", "log", "size", "written"], rows, right=["size"])
    print_result(found, "\n".join(lines), as_json=options.json)
    return 0


def _find(client: ClusterClient, named: str) -> str:
    from firesteel.rest import task_managers as tm

    managers = [manager.id for manager in client.call(tm.TASK_MANAGERS).taskmanagers]
    if named == TASK_MANAGER and len(managers) == 1:
        return managers[0]
    found = [each for each in managers if each == named] or [each for each in managers if each.startswith(named)]
    if len(found) != 1:
        raise LogNotFoundError(
            f"{named!r} matches {len(found) or 'none'} of the processes {', '.join([JOB_MANAGER, *managers])}.",
        )
    return found[0]
