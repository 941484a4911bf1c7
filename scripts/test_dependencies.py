"""Runs tests with other versions of those dependencies whose private interfaces Firesteel uses.

``pyproject.toml`` admits only minor versions that were tried. Each has a virtual environment of its own,
``.venvs/<package>-<version>``: ``requirements.lock`` with that one package replaced. Arguments are the packages or
versions to try (``pyspark``, ``pyspark-4.1``); without any, all are. The exit code is 1 if a version failed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from test_versions import ROOT, set_up


class Trial(NamedTuple):
    """Minor versions of a package, and the tests of the code that uses its private interfaces."""

    package: str
    versions: Sequence[str]
    tests: Sequence[str]


TRIALS = (
    Trial("pyspark", ("4.2", "4.3"), ("tests/spark",)),
    Trial("uvicorn", ("0.34", "0.54"), ("tests/unit/rest", "tests/integration/rest")),
)


def main(arguments: Sequence[str]) -> int:
    """Tries one version after the other and prints how each has ended."""
    outcomes: dict[str, str] = {}
    for package, versions, tests in TRIALS:
        for version in versions:
            name = f"{package}-{version}"
            if not arguments or package in arguments or name in arguments:
                outcomes[name] = _try(name, f"{package}=={version}.*", tests)
    for name, outcome in outcomes.items():
        sys.stdout.write(f"{name:14} {outcome}\n")
    if not outcomes:
        sys.stdout.write(f"Nothing to try: {' '.join(arguments)} is none of {', '.join(t.package for t in TRIALS)}.\n")
    return int(not outcomes or any(outcome != "passed" for outcome in outcomes.values()))


def _try(name: str, requirement: str, tests: Sequence[str]) -> str:
    try:
        python = set_up(name, sys.executable, requirement)
    except subprocess.CalledProcessError as error:
        return f"failed: cannot be set up ({error})"
    sys.stdout.write(f"{requirement}\n")
    sys.stdout.flush()
    folders = [folder for folder in tests if (ROOT / folder).exists()]
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *folders]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - a command of ours
    return "passed" if code == 0 else f"failed: pytest ended with {code}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
