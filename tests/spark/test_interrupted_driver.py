"""Ctrl-C, and a driver that is killed or stands still: nothing of the job stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from firesteel.spark.session import session
from firesteel.testing import eventually
from tests.support.processes import command_line, descendants, is_alive, is_of_worker_daemon

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

PROGRAM = """
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from texts_of_the_program import text_of

if __name__ == "__main__":
    configuration = Configuration().set_string("heartbeat.timeout", "10 s")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    source = DataGeneratorSource(lambda index: index, None, RateLimiterStrategy.per_second(100))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda number: number % 5).map(text_of).print()
    env.execute("endless")
"""
BESIDE_IT = """
import os

def text_of(number):
    return f"number {number} of {os.getpid()}"
"""
"""A module that only the program can find, since it lies in the same directory."""
DEADLINE_S = 120


class Driver:
    """A program in a process of its own, in the middle of a job."""

    def __init__(self, directory: Path):
        program = directory / "program.py"
        program.write_text(PROGRAM)
        (directory / "texts_of_the_program.py").write_text(BESIDE_IT)
        (directory / "elsewhere").mkdir()
        self.output = directory / "stdout"
        self.errors = directory / "stderr"
        with self.output.open("w") as out, self.errors.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, str(program)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=directory / "elsewhere",
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(directory)},
                start_new_session=True,
            )
        eventually(self._prints, timeout=240)
        self.family = descendants(self.process.pid)

    def _prints(self) -> bool:
        assert self.process.poll() is None, self.errors.read_text()
        return "number 20" in self.output.read_text()

    def left(self) -> list[str]:
        """What still runs of all that the driver had started."""
        return [f"{pid} {command_line(pid)[:100]}" for pid in self.family if is_alive(pid)]

    def wait_until_nothing_is_left(self) -> None:
        def nothing() -> None:
            assert self.left() == []

        eventually(nothing, timeout=DEADLINE_S)

    def stop(self) -> None:
        for pid in (self.process.pid, *self.family):
            with suppress(ProcessLookupError):
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait(DEADLINE_S)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    driver = Driver(tmp_path)
    yield driver
    driver.stop()


def _kinds(driver: Driver) -> set[str]:
    kinds = {"daemon of Python workers" for pid in driver.family if is_of_worker_daemon(pid)}
    return kinds | {"SparkSubmit" for pid in driver.family if "SparkSubmit" in command_line(pid)}


def test_ctrl_c_ends_the_job_and_all_its_processes(driver: Driver) -> None:
    assert _kinds(driver) == {"SparkSubmit", "daemon of Python workers"}
    os.killpg(driver.process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    assert driver.process.wait(DEADLINE_S) == -signal.SIGINT
    driver.wait_until_nothing_is_left()
    errors = driver.errors.read_text()
    assert "KeyboardInterrupt" in errors
    # one traceback: the interrupt itself, nothing of Spark's or of the threads
    assert errors.count("Traceback") == 1, errors
    assert list(driver.output.parent.glob("firesteel*")) == []


def test_processes_of_a_killed_driver_end_by_themselves(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _kinds(driver) == {"SparkSubmit", "daemon of Python workers"}
    driver.process.kill()
    driver.process.wait(DEADLINE_S)
    driver.wait_until_nothing_is_left()
    # it could not remove its directory: whoever starts a Spark next does
    (left,) = driver.output.parent.glob("firesteel*")
    assert str(driver.process.pid) in left.name
    monkeypatch.setattr(tempfile, "tempdir", str(driver.output.parent))
    session._remove_left_behind()
    assert not left.exists()


def _is_slot(pid: int) -> bool:
    """Whether the process runs a slot: then it has threads, which a worker that waits for Spark's next task has not."""
    try:
        return bool(psutil.Process(pid).num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def test_slots_of_a_driver_that_stands_still_end_by_themselves(driver: Driver) -> None:
    """Somebody else may have taken the job over meanwhile."""
    slots = {int(line.rpartition(" ")[2]) for line in driver.output.read_text().splitlines() if " of " in line}
    assert len(slots) == 2
    assert all(_is_slot(slot) for slot in slots)
    os.kill(driver.process.pid, signal.SIGSTOP)
    try:
        # the first one ends its process; another may notice that first, and leave its process to Spark
        eventually(lambda: not any(_is_slot(slot) for slot in slots), timeout=DEADLINE_S)
    finally:
        os.kill(driver.process.pid, signal.SIGCONT)
    # when it goes on, its job has failed: there are no checkpoints that it could start from again
    assert driver.process.wait(DEADLINE_S) == 1
    driver.wait_until_nothing_is_left()
