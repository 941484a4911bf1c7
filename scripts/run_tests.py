"""Runs all tests in processes side by side: those that need Spark, those that need servers, and the others.

Much of what the first two do is to wait. Arguments go to all. The exit code is that of the one that failed, if any did.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

PARTS = {
    "spark": "spark or cluster",
    "services": "services and not spark and not cluster",
    "others": "not services and not spark and not cluster",
}
NO_TESTS = 5
"""What pytest says where an argument has left nothing to run."""


def main(arguments: Sequence[str]) -> int:
    """Starts all parts, shows what they print as it comes, and waits for them."""
    began = time.monotonic()
    running: dict[str, subprocess.Popen[str]] = {}
    printed: dict[str, list[str]] = {name: [] for name in PARTS}
    readers: list[threading.Thread] = []
    try:
        for name, marks in PARTS.items():
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
        sys.stdout.writelines(f"{name:>8} | {line[:500].rstrip()}\n" for line in _failures(printed[name]))
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
        sys.stdout.write(f"{name:>8} | {line}")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
