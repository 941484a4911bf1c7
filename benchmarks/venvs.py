"""Virtual environments of the peers, made once in a cache directory outside the package."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["PeerUnavailable", "cache_directory", "python_of"]


class PeerUnavailable(Exception):
    """A peer cannot be installed here; the message says why."""


def cache_directory() -> Path:
    """Where the peers live: FIRESTEEL_BENCH_CACHE, or ~/.cache/firesteel-bench."""
    configured = os.environ.get("FIRESTEEL_BENCH_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "firesteel-bench"


def _pyspark_version() -> str:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise PeerUnavailable("PySpark is not installed in the running environment") from None


def _requirements(name: str) -> list[str]:
    if name == "pyflink":
        return ["apache-flink==2.3.0"]
    if name == "bytewax":
        return ["bytewax==0.21.*"]
    if name == "pyspark-kafka":
        # the version whose Kafka connector could be had
        return ["pyspark==4.0.0", "pandas<3", "pyarrow", "protobuf"]
    # The running environment's own version, with what transformWithStateInPandas needs beside it.
    return [f"pyspark=={_pyspark_version()}", "pandas", "pyarrow", "protobuf"]


def _why(output: str) -> str:
    """The line of pip's output that tells most."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["pip said nothing"])[-1][:200]


def python_of(name: str, cache: Path) -> Path:
    """Interpreter of a peer's environment, installed if it is not there yet or asks for something else."""
    requirements = _requirements(name)
    directory = cache / f"{name}-py{sys.version_info.major}{sys.version_info.minor}"
    python = directory / "bin" / "python"
    marker = directory / "installed.txt"
    wanted = "\n".join(requirements)
    if marker.is_file() and marker.read_text() == wanted and python.exists():
        return python
    print(f"installing {' '.join(requirements)} into {directory}", file=sys.stderr)
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    venv.EnvBuilder(with_pip=True, symlinks=True).create(directory)
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *requirements]
    # PyFlink's older dependencies are built with setuptools that still has pkg_resources.
    environment = dict(os.environ)
    if name == "pyflink":
        constraint = directory / "build-constraints.txt"
        constraint.write_text("setuptools<80\n")
        environment["PIP_CONSTRAINT"] = str(constraint)
    done = subprocess.run(
        pip, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        shutil.rmtree(directory, ignore_errors=True)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise PeerUnavailable(f"pip cannot install {requirements[0]} on Python {version}: {_why(done.stdout)}")
    marker.write_text(wanted)
    return python
