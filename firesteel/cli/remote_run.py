"""Runs a program whose jobs go to a cluster, and says what becomes of them."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from firesteel.cli.connection import ClusterAddress
from firesteel.cli.job_watch import JobWatch
from firesteel.cli.jobs import ENDED
from firesteel.cli.program import run_program
from firesteel.cli.program_files import ProgramFiles
from firesteel.cli.progress import say
from firesteel.cli.remote_executor import RemoteExecutor
from firesteel.common.errors import FiresteelError
from firesteel.rest.cluster import CLUSTER_OVERVIEW

__all__ = ["ProgramWithoutJobError", "run_on_cluster"]

INTERRUPTED = 130


class ProgramWithoutJobError(FiresteelError):
    """A program that ended well, but has submitted nothing."""


class _Interrupted(BaseException):
    """Ctrl-C: ends the program, but not as KeyboardInterrupt does, which has execute() cancel its job."""


def run_on_cluster(
    options: argparse.Namespace, settings: Mapping[str, str], cluster: ClusterAddress, files: ProgramFiles
) -> int:
    """Runs the program here and its jobs there; the command's exit code."""
    with cluster.client() as client, JobWatch(client, quiet=options.detached) as watch:
        client.call(CLUSTER_OVERVIEW)  # a cluster that does not answer is better known before the program runs

        def submitted(job_id: str, job_name: str) -> None:
            if options.detached:
                print(f"Job has been submitted with JobID {job_id}", flush=True)  # noqa: T201
            else:
                watch.submitted(job_id, job_name)

        executor = RemoteExecutor(
            client,
            artifacts=files.artifacts(),
            search_path=files.search_path,
            detached=options.detached,
            heartbeat=options.cancel_on_exit and not options.detached,
            on_submit=submitted,
            on_status=watch.status_changed,
        )
        try:
            with _interruptible(not options.cancel_on_exit):
                code = run_program(
                    options.program,
                    options.arguments,
                    settings,
                    executor,
                    search_path=files.search_path,
                    module=options.module,
                )
        except _Interrupted:
            watch.close()
            _say_what_goes_on(executor)
            return INTERRUPTED
        finally:
            executor.close()
    if code == 0 and not executor.jobs:
        raise ProgramWithoutJobError(
            f"{options.program} ended without submitting a job.",
            hint="A program must call env.execute(); if it does so only under some condition, pass the arguments it "
            "needs.",
        )
    return code


@contextmanager
def _interruptible(replaced: bool) -> Iterator[None]:
    """While it lasts, Ctrl-C raises _Interrupted."""
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
    sys.stderr.write("\n")
    for job in executor.jobs:
        with suppress(FiresteelError):
            if job.status().name not in ENDED:
                say(f"job '{job.job_name}' goes on. To cancel it: firesteel cancel {job.job_id()}")
