"""A JobManager's share of high availability in a process of its own: commands in, answers out, a JSON line each.

``python leader.py filesystem <directory> <lease>`` or ``zookeeper <quorum> <root> <directory> <timeout>``. It tells
its term once it leads. A command is ``[method of the store, arguments…]``; the answer is ``[result, error]``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from firesteel.cluster.ha.services import HighAvailabilityServices, JobResult, JobSubmission
from firesteel.common.job_status import JobStatus
from firesteel.testing.services.processes import die_with_parent

ROOT = Path(__file__).parents[3]
NOW = 4_000_000_000_000
"""So late that no result is ever old."""


class LeaderProcess:
    """Such a process, seen from a test."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None):
        self.process = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT), **(environment or {})},
            preexec_fn=die_with_parent,
        )
        self.pid = self.process.pid

    def term(self) -> int:
        """Waits until it leads."""
        return self._read()

    def send(self, method: str, *arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([method, *arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What the command gave: the result, or the name of the error."""
        result, error = self._read()
        return error or result

    def ask(self, method: str, *arguments: Any) -> Any:
        self.send(method, *arguments)
        return self.answer()

    def close(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(60)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the process has ended: {self.process.wait(60)}"
        return json.loads(line)


def job(number: int) -> JobSubmission:
    """A job that tells by its content which it is."""
    content = f"job {number}".encode() * (number + 1)
    return JobSubmission(job_id(number), f"job {number}", content, {f"lib{number}.py": b"\0\xff" * number}, number)


def job_id(number: int) -> str:
    return f"{number:032x}"


def result(number: int, status: JobStatus = JobStatus.FINISHED) -> JobResult:
    failure = "" if status is JobStatus.FINISHED else "why"
    return JobResult(job_id(number), f"job {number}", status, number, NOW + number, failure)


def main() -> None:
    services: HighAvailabilityServices
    kind, *arguments = sys.argv[1:]
    if kind == "filesystem":
        from firesteel.cluster.ha.filesystem_election import FileSystemHighAvailability

        services = FileSystemHighAvailability(arguments[0], float(arguments[1]))
    else:
        from firesteel.cluster.ha.zookeeper import ZooKeeperHighAvailability

        quorum, root, directory, timeout = arguments
        services = ZooKeeperHighAvailability(quorum, root, directory, float(timeout))
    lost = threading.Event()
    leadership = services.await_leadership("leader:1", lambda _reason: lost.set())
    print(json.dumps(leadership.term), flush=True)
    for line in sys.stdin:
        method, *given = json.loads(line)
        answer: Any = None
        error = None
        try:
            if method == "put":
                leadership.store.put(job(*given))
            elif method == "end":
                leadership.store.end(result(*given))
            elif method == "is_valid":
                answer = leadership.is_valid()
            elif method == "lost":
                answer = lost.wait(60)
            else:
                answer = getattr(leadership.store, method)(*given)
        except Exception as raised:
            error = type(raised).__name__
        print(json.dumps([answer, error]), flush=True)


if __name__ == "__main__":
    main()
