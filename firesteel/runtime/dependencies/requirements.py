"""Installs the packages that a job requires, with pip, into a directory that the job alone imports from."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from firesteel.runtime.dependencies.bundle import DependencyBundle, DependencyError

__all__ = ["install_requirements"]

MAX_OUTPUT = 8_000


def install_requirements(bundle: DependencyBundle, executable: str, target: Path) -> None:
    """Installs into a directory; DependencyError with pip's output if that fails."""
    assert bundle.requirements is not None
    with tempfile.TemporaryDirectory(prefix="firesteel-requirements-") as name:
        directory = Path(name)
        file = directory / "requirements.txt"
        file.write_bytes(bundle.requirements)
        command = [
            executable,
            "-m",
            "pip",
            "install",
            "--no-input",
            "--disable-pip-version-check",
            "--ignore-installed",
        ]
        command += ["--no-warn-script-location", "--target", str(target), "-r", str(file)]
        if bundle.wheels is not None:
            wheels = directory / "wheels"
            wheels.mkdir()
            for wheel in bundle.wheels:
                (wheels / Path(wheel.name).name).write_bytes(wheel.content)
            command += ["--no-index", "--find-links", str(wheels)]
        # the packages that pip itself sees must not count as installed
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PIP_TARGET")}
        try:
            done = subprocess.run(  # noqa: S603 - what to run is the user's own choice
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except OSError as error:
            raise DependencyError(f"The Python interpreter {executable} cannot be started: {error}.") from None
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace").strip()
        raise DependencyError(
            f"The job's Python requirements cannot be installed. pip exited with code {done.returncode}:\n"
            f"{output[-MAX_OUTPUT:]}",
            hint=_hint(bundle, output, executable),
        )


def _hint(bundle: DependencyBundle, output: str, executable: str) -> str:
    if "No module named pip" in output:
        return f"Install pip for {executable}."
    if bundle.wheels is not None:
        return (
            "With a directory of wheels no package index is used: it must have all packages, also those that others "
            "need, for this platform and Python version. pip download -d DIRECTORY -r requirements.txt collects them."
        )
    return (
        "Check the names and versions, and that this machine reaches the package index; or pass a directory of wheels "
        "as the second argument of set_python_requirements."
    )
