"""A run that is ended from outside leaves no processes behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firesteel.testing import eventually
from tests.support.chaos.processes import ROOT, Family
from tests.support.processes import command_line, descendants

START_S = 240.0
END_S = 240.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_soak_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.soak", "--minutes", "5", "--directory", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    family = Family()

    def has_workers() -> bool:
        family.look(run.pid)
        return any("worker.Worker" in command_line(pid) for pid in descendants(run.pid))

    try:
        eventually(has_workers, timeout=START_S, interval=0.2)
        run.send_signal(number)
        code = run.wait(END_S)
        eventually(lambda: not family.alive(), timeout=60)
    finally:
        family.kill()
        run.wait(120)
    assert code == (128 + number if number == signal.SIGTERM else -number)


IGNORED_EXIT = """
import os, signal, time
from tests.support.processes import exit_by_sigterm

exit_by_sigterm()
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGTERM))
try:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        time.sleep(60)
    else:
        os._exit(0)
finally:
    if child:
        print("cleaned up")
"""


def test_sigterm_ends_a_run_that_just_forks() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IGNORED_EXIT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGTERM, "cleaned up\n")
    assert "Exception ignored" in ended.stderr
