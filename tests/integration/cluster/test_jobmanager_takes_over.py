"""What a JobManager does once it leads, without Spark."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from firesteel.cluster.diagnostics.logs import LogFiles
from firesteel.cluster.ha.services import JobResult, Leadership
from firesteel.cluster.jobmanager import JobManager
from firesteel.cluster.launch import APPLICATION, SESSION, Launch
from firesteel.cluster.rest.request import Route
from firesteel.config.configuration import Configuration
from tests.support.jobs.dispatched_jobs import MemoryStore, start_in_process


class _NoSpark:
    resources: Any = None

    def start(self) -> None:
        pass

    def await_start(self) -> None:
        pass

    def watch_application(self, on_lost: Callable[[str], None]) -> None:
        pass

    def is_alive(self) -> bool:
        return True

    def executors(self) -> list[Any]:
        return []

    def java_pid(self) -> int | None:
        return None

    create_runner = staticmethod(start_in_process)


class _Store(MemoryStore):
    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self._events = events

    def results(self) -> Sequence[JobResult]:
        self._events.append("recovers")
        return super().results()


class _Leadership:
    term = 1

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    def is_valid(self) -> bool:
        return True

    def resign(self) -> None:
        pass


class _Services:
    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def await_leadership(self, address: str, on_lost: Callable[[str], None]) -> Leadership:
        return self._leadership


class _Server:
    public_address = "localhost:1"

    def __init__(self, events: list[str], then: Callable[[], None]) -> None:
        self._events = events
        self._then = then

    def replace_routes(self, routes: list[Route]) -> None:
        self._events.append("answers")
        self._then()


def test_jobs_are_recovered_before_anybody_is_told_that_they_do_not_exist(tmp_path: Path) -> None:
    events: list[str] = []
    configuration = Configuration.from_dict({"cluster.directory": str(tmp_path)})
    logs = LogFiles(tmp_path / "log")
    try:
        manager = JobManager(Launch(SESSION, configuration), logs)
        manager._spark = _NoSpark()  # type: ignore[assignment]
        server = _Server(events, lambda: manager.stop("the test is over"))
        manager._lead(server, _Services(_Leadership(_Store(events))))  # type: ignore[arg-type]
    finally:
        logs.close()
    assert events == ["recovers", "answers"]


@pytest.mark.parametrize("raised", ["BrokenPipeError()", "KeyboardInterrupt()", "SystemExit(0)", "ValueError()"])
def test_an_application_ends_with_its_program_however_that_ends(tmp_path: Path, raised: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"raise {raised}")
    configuration = Configuration.from_dict({"cluster.directory": str(tmp_path)})
    logs = LogFiles(tmp_path / "log")
    ended: Future[int] = Future()

    def lead() -> None:
        manager = JobManager(Launch(APPLICATION, configuration, str(program)), logs)
        manager._spark = _NoSpark()  # type: ignore[assignment]
        server, services = _Server([], lambda: None), _Services(_Leadership(MemoryStore()))
        ended.set_result(manager._lead(server, services))  # type: ignore[arg-type]

    try:
        threading.Thread(target=lead, daemon=True).start()
        assert ended.result(120) == 1
    finally:
        logs.close()


STOPPED_AGAIN_AND_AGAIN = """
import faulthandler, signal, sys
from pathlib import Path
from firesteel.cluster.jobmanager import JobManager
from firesteel.cluster.launch import SESSION, Launch
from firesteel.cluster.diagnostics.logs import LogFiles
from firesteel.config.configuration import Configuration

directory = Path(sys.argv[1])
faulthandler.dump_traceback_later(60, exit=True)
configuration = Configuration.from_dict({"cluster.directory": str(directory)})
manager = JobManager(Launch(SESSION, configuration), LogFiles(directory / "log"))
signal.signal(signal.SIGALRM, lambda *_: manager.stop("a signal"))
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for _ in range(2000):
    manager._told.get()
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_signals_that_interrupt_each_other_lock_nothing_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED_AGAIN_AND_AGAIN, str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
