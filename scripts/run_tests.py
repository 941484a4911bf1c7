"""Runs all tests: those that need Spark in one process, the others in another beside it.

Arguments go to both. The exit code is that of the one that failed, if any did.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

HALVES = {"spark": "spark or cluster", "others": "not spark and not cluster"}
NO_TESTS = 5
"""What pytest says where an argument has left nothing to run."""


def main(arguments: Sequence[str]) -> int:
    """Starts both halves, shows what they print as it comes, and waits for them."""
    began = time.monotonic()
    running: dict[str, subprocess.Popen[str]] = {}
    printed: dict[str, list[str]] = {name: [] for name in HALVES}
    readers: list[threading.Thread] = []
    try:
        for name, marks in HALVES.items():
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks, *arguments]
            process = subprocess.Popen(  # noqa: S603 - a command of ours
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            running[name] = process
            assert process.stdout is not None
            readers.append(threading.Thread(target=_show, args=(name, process.stdout, printed[name]), daemon=True))
            readers[-1].start()
        codes = {name: process.wait() for name, process in running.items()}
        for reader in readers:
            reader.join(10)
    except KeyboardInterrupt:
        # pytest has got the signal too, and cleans up
        for process in running.values():
            process.wait(60)
        return 130
    failed = {name: code for name, code in codes.items() if code not in (0, NO_TESTS)}
    for name in failed:
        sys.stdout.writelines(f"{name:>6} | {line[:500].rstrip()}\n" for line in _failures(printed[name]))
    outcome = f"failed: {', '.join(failed)}" if failed else "passed"
    sys.stdout.write(f"{outcome}, in {time.monotonic() - began:.0f} s\n")
    if failed:
        return next(iter(failed.values()))
    return NO_TESTS if set(codes.values()) == {NO_TESTS} else 0


def _failures(lines: Sequence[str]) -> Sequence[str]:
    """What pytest said of each test that failed, or its last words if it has not come so far."""
    return [line for line in lines if line.startswith(("FAILED ", "ERROR "))] or lines[-15:]


def _show(name: str, output: IO[str], printed: list[str]) -> None:
    for line in output:
        printed.append(line)
        sys.stdout.write(f"{name:>6} | {line}")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
