"""Starts JobManager processes on this machine, waits until they are ready, and ends them with their children."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

import firesteel
from firesteel.client.connection import ClusterAddress
from firesteel.client.errors import UsageError
from firesteel.client.local_clusters import JobManagerEntry, LocalCluster
from firesteel.common.errors import FiresteelError
from firesteel.config import cluster_options
from firesteel.rest.client import ConnectionFailedError, RestClientError
from firesteel.rest.cluster import CLUSTER_OVERVIEW

__all__ = [
    "ClusterStartError",
    "end_processes",
    "launch",
    "log_tail",
    "run_in_foreground",
    "start_job_manager",
    "starting",
]

JOB_MANAGER = "firesteel.cluster.main"
EXIT_CODE_INTERRUPTED = 130
_LOG_LINES = 15
_POLL_S = 0.1
_PROBE_TIMEOUT_S = 10.0


class ClusterStartError(FiresteelError):
    """A JobManager failed to start; the message contains the end of its log."""


@contextmanager
def starting(cluster: LocalCluster) -> Iterator[None]:
    """Prevents other commands from starting the same cluster within the context."""
    try:
        cluster.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (cluster.directory / "start.lock").open("w")
    except OSError as error:
        raise UsageError(f"Cannot use the cluster directory {cluster.directory}: {error}.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"Another command is currently starting the cluster '{cluster.cluster_id}'.") from None
        yield


def start_job_manager(
    cluster: LocalCluster,
    told: Mapping[str, Any],
    *,
    search_path: Sequence[str] = (),
    standby: bool = False,
    seconds: float = 120.0,
    waiting: Callable[[], None] = lambda: None,
) -> JobManagerEntry:
    """Starts a JobManager process, see :func:`launch`, and waits until it accepts jobs, or listens if it is a standby.

    Stops it again if it is not ready in time.
    """
    log_from = log_size(cluster)
    process = launch(cluster, told, search_path=search_path)
    deadline = time.monotonic() + seconds
    try:
        while True:
            code = process.poll()
            if code is not None:
                raise _not_started(cluster, f"exited with code {code}", log_from)
            entry = next((entry for entry in cluster.job_managers() if entry.pid == process.pid), None)
            if entry is not None and (standby or _answers(entry, told["configuration"])):
                process.returncode = 0  # it is not waited for on purpose: avoids a warning
                return entry
            if time.monotonic() > deadline:
                end_processes([process.pid], 5)
                process.wait(10)
                raise _not_started(cluster, f"was not ready after {seconds:g} s and was stopped", log_from)
            waiting()
            time.sleep(_POLL_S)
    except BaseException:
        end_processes([process.pid], 5)
        raise


def _answers(entry: JobManagerEntry, settings: Mapping[str, str]) -> bool:
    try:
        with ClusterAddress.of_entry(entry, settings).client(_PROBE_TIMEOUT_S) as client:
            client.call(CLUSTER_OVERVIEW)
    except (RestClientError, ConnectionFailedError):
        return False
    return True


def launch(
    cluster: LocalCluster, told: Mapping[str, Any], *, search_path: Sequence[str] = (), foreground: bool = False
) -> subprocess.Popen[bytes]:
    """Starts a JobManager process, in a new session or attached to this terminal.

    ``told`` are its launch settings, with ``configuration``. They stay in the directory of the cluster, as the
    process may restart from them. The directory is added to the settings: a standby that restarts after the leader
    is gone would not find it by the cluster's id.
    """
    cluster.remember()
    settings = {**told["configuration"], cluster_options.CLUSTER_DIRECTORY.key: str(cluster.directory)}
    _forget_launches(cluster)
    descriptions = cluster.directory / "launch"
    descriptions.mkdir(exist_ok=True, mode=0o700)
    description = descriptions / f"{uuid.uuid4().hex}.json"
    with open(os.open(description, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
        json.dump({**told, "configuration": settings}, file, indent=1)
    command = [sys.executable, "-m", JOB_MANAGER, str(description)]
    environment = _environment(search_path)
    if foreground:
        return subprocess.Popen(command, env=environment)  # noqa: S603 - our own module
    log = log_file(cluster)
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def log_file(cluster: LocalCluster) -> Path:
    """The file with the output of the JobManagers on this machine."""
    return cluster.log_directory / "jobmanager.out"


def log_tail(file: Path, since: int = 0) -> str:
    """The last lines of a log after the given position."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(since, os.fstat(opened.fileno()).st_size - 65536))
            text = opened.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(line for line in text.splitlines()[-_LOG_LINES:])


def log_size(cluster: LocalCluster) -> int:
    """The current size of the log."""
    try:
        return log_file(cluster).stat().st_size
    except OSError:
        return 0


def end_processes(pids: Sequence[int], seconds: float) -> list[int]:
    """Terminates processes and their children, waits, and kills the rest. Returns the ids of the killed processes."""
    family: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            family.update({member.pid: member for member in (process, *process.children(recursive=True))})
    told = [family[pid] for pid in pids if pid in family]
    for process in told:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(_is_there(member) for member in family.values()):
        for process in told:
            # what it starts now is found only as long as it is there itself
            with suppress(psutil.NoSuchProcess):
                for child in process.children(recursive=True):
                    family.setdefault(child.pid, child)
        time.sleep(_POLL_S)
    left = [member for member in family.values() if _is_there(member)]
    for member in left:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(left, timeout=10)
    psutil.wait_procs(list(family.values()), timeout=0)  # those that this process has started itself
    return [member.pid for member in left]


def run_in_foreground(process: subprocess.Popen[bytes], seconds: float, watch: Callable[[], bool]) -> int:
    """Waits for a foreground process, forwards termination signals to it, and returns its exit code.

    ``watch`` is called until it returns True. Ctrl-C reaches both processes: it is a request to stop, and this process
    waits until the other one has stopped.
    """
    deadline: float | None = None
    is_watching = True
    before = signal.signal(signal.SIGTERM, lambda number, _frame: process.send_signal(number))
    try:
        while True:
            try:
                code = process.wait(_POLL_S if is_watching else 1.0)
            except KeyboardInterrupt:
                deadline = deadline or time.monotonic() + seconds
            except subprocess.TimeoutExpired:
                is_watching = is_watching and deadline is None and not watch()
                if deadline is not None and time.monotonic() > deadline:
                    end_processes([process.pid], 0)
            else:
                return code if deadline is None else EXIT_CODE_INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _is_there(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _not_started(cluster: LocalCluster, what: str, log_from: int) -> ClusterStartError:
    said = log_tail(log_file(cluster), log_from)
    reason = next((line for line in reversed(said.splitlines()) if line.startswith("firesteel: ")), None)
    text = f"The JobManager {what}."
    if reason is not None:
        text = f"The JobManager could not be started: {reason.removeprefix('firesteel: ')}"
    log = log_file(cluster)
    return ClusterStartError(f"{text}\n{said}\n({log})" if said else text, hint=f"The logs are in {log.parent}.")


def _forget_launches(cluster: LocalCluster) -> None:
    """Removes the launch files of JobManagers that have exited; they may contain passwords."""
    if not cluster.job_managers():
        for path in (cluster.directory / "launch").glob("*.json"):
            path.unlink(missing_ok=True)


def _environment(search_path: Sequence[str]) -> dict[str, str]:
    """This process's, with what the JobManager imports from besides what is installed."""
    environment = dict(os.environ)
    package = str(Path(firesteel.__file__).parents[1])
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    path = [*search_path, *([] if package in installed else [package])]
    if environment.get("PYTHONPATH"):
        path.append(environment["PYTHONPATH"])
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(path)
    environment["PYTHONUNBUFFERED"] = "1"
    return environment
