"""Runs the unit and integration tests and a smoke test on Spark with every supported Python version that is installed.

Each version has a virtual environment of its own, ``.venvs/<version>``, made from ``requirements.lock`` when it is
first needed or the file has changed. Interpreters are looked for among pyenv's and on the path. Arguments go to pytest,
and replace the tests that are run by default. The exit code is 1 if a version failed, or none is installed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENVS = ROOT / ".venvs"
LOCK = ROOT / "requirements.lock"
TESTS = ("tests/unit", "tests/integration", "tests/spark/test_smoke.py")


def main(arguments: Sequence[str]) -> int:
    """Tests one version after the other and says how each has ended."""
    outcomes: dict[str, str] = {}
    for version in supported_versions():
        interpreter = find_interpreter(version)
        if interpreter is None:
            outcomes[version] = "not installed"
            continue
        try:
            python = set_up(version, interpreter)
        except subprocess.CalledProcessError as error:
            outcomes[version] = f"failed: cannot be set up ({error})"
            continue
        sys.stdout.write(f"Python {version}: {interpreter}\n")
        sys.stdout.flush()
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - a command of ours
        outcomes[version] = "passed" if code == 0 else f"failed: pytest ended with {code}"
    for version, outcome in outcomes.items():
        sys.stdout.write(f"Python {version:5} {outcome}\n")
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()) or "passed" not in outcomes.values())


def supported_versions() -> list[str]:
    """Those that the package says it runs on."""
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())


def find_interpreter(version: str) -> str | None:
    """The newest interpreter of a version that runs."""
    return next((path for path in _candidates(version) if _version_of(path) == version), None)


def _candidates(version: str) -> Iterator[str]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        yield sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = pyenv.glob(f"versions/{version}.*/bin/python")
    yield from map(str, sorted(installed, key=_numbers, reverse=True))
    found = shutil.which(f"python{version}")
    if found is not None:
        yield found


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.parts[-3])]


def _version_of(interpreter: str) -> str | None:
    """What an interpreter says it is; one of pyenv's may be a name that leads nowhere."""
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    try:
        asked = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()


def set_up(name: str, interpreter: str, *replacements: str) -> Path:
    """The interpreter of a virtual environment with everything installed, and some packages in another version."""
    directory = VENVS / name
    python, stamp = directory / "bin" / "python", directory / ".installed"
    content = LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes() + " ".join(replacements).encode()
    wanted = hashlib.sha256(content).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    sys.stdout.write(f"Setting up {directory} (once)…\n")
    sys.stdout.flush()
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in (
        [interpreter, "-m", "venv", "--clear", str(directory)],
        [*pip, "--require-hashes", "-r", str(LOCK)],
        *([*pip, replacement] for replacement in replacements),
        [*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)],
    ):
        subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - a command of ours
    stamp.write_text(wanted)
    return python


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
