"""The leak check itself: each way to leak fails the test that does it, and only that one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LEAKS = {
    "a thread that is not daemon": (
        """
        import threading
        stop = threading.Event()
        threading.Thread(target=stop.wait, args=(60,), name="mine").start()
        release.append(stop.set)
        """,
        "thread 'mine' (not daemon)",
    ),
    "a daemon thread of Firesteel": (
        """
        import threading
        threading.Thread(target=threading.Event().wait, args=(60,), name="firesteel-x", daemon=True).start()
        """,
        "thread 'firesteel-x' (daemon)",
    ),
    "a process": (
        """
        import subprocess, sys
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        release.append(lambda: (process.kill(), process.wait()))
        """,
        "time.sleep(60)",
    ),
    "sockets": (
        """
        import socket
        release.append([socket.create_server(("127.0.0.1", 0)) for _ in range(5)].clear)
        """,
        "(socket:[",
    ),
    "files": ("release.append([open(__file__) for _ in range(5)].clear)", "test_it.py)"),
    "a temporary directory": (
        """
        import tempfile
        tempfile.mkdtemp(prefix="firesteel-spark-1-")
        """,
        "temporary file 'firesteel-spark-1-",
    ),
}

HARMLESS = """
def test_harmless(tmp_path):
    import socket, subprocess, sys, tempfile, threading
    thread = threading.Thread(target=lambda: None, name="firesteel-x")
    thread.start()
    late = threading.Thread(target=threading.Event().wait, args=(0.2,), name="firesteel-late")
    late.start()
    threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    socket.create_server(("127.0.0.1", 0)).close()
    with tempfile.TemporaryDirectory(prefix="firesteel-"):
        pass
"""

HEAD = """
import pytest
from tests.support import leak_check
leak_check.DEADLINE_S = {deadline}
from tests.support.leak_check import no_leaks
release = []

@pytest.fixture(scope="session", autouse=True)
def released():
    yield
    for action in release:
        action()

"""


def _run(directory: Path, body: str, deadline_s: float) -> str:
    test_file = directory / "test_it.py"
    test_file.write_text(HEAD.format(deadline=deadline_s) + body)
    (directory / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(test_file)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(directory / "tmp")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns what pytest prints for a test that leaks of each kind, each with one after it that does not."""
    body = ""
    for number, (code, _) in enumerate(LEAKS.values()):
        indented = "\n".join(f"    {line.strip()}" for line in code.strip().splitlines())
        body += f"def test_leak_{number}():\n{indented}\n\ndef test_next_{number}():\n    pass\n\n"
    return _run(tmp_path_factory.mktemp("leaking"), body, deadline_s=0.2)


@pytest.mark.parametrize("number", range(len(LEAKS)), ids=list(LEAKS))
def test_a_test_that_leaks_fails(number: int, leaking: str) -> None:
    _, message = list(LEAKS.values())[number]
    _, _, rest = leaking.partition(f" ERROR at teardown of test_leak_{number} ")
    report, _, _ = rest.partition(" ERROR at teardown of ")
    assert "LeakError" in report
    assert message in report
    assert f"ERROR test_it.py::test_next_{number}" not in leaking, "the leak is reported once, of the test that did it"


def test_every_test_that_leaks_passes_otherwise(leaking: str) -> None:
    assert f"{2 * len(LEAKS)} passed, {len(LEAKS)} errors" in leaking, leaking


def test_what_a_test_clears_away_is_no_leak(tmp_path: Path) -> None:
    output = _run(tmp_path, HARMLESS, deadline_s=30)
    assert "1 passed" in output, output
    assert "error" not in output
