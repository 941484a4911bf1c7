"""The environment of a Python worker whose job has dependencies: the variables that describe it, and their effect."""

from __future__ import annotations

import fcntl
import importlib
import os
import sys
from functools import cache
from pathlib import Path

from firesteel.common.errors import FiresteelError

__all__ = [
    "DEPENDENCIES_VARIABLE",
    "DIRECTORIES_VARIABLE",
    "SEARCH_PATH_VARIABLE",
    "WORKING_DIRECTORY_VARIABLE",
    "DependenciesMissingError",
    "enter_worker_environment",
]

DEPENDENCIES_VARIABLE = "FIRESTEEL_DEPENDENCIES"
"""Identifies the dependencies. Spark keeps apart Python workers whose environments differ."""
SEARCH_PATH_VARIABLE = "FIRESTEEL_SEARCH_PATH"
WORKING_DIRECTORY_VARIABLE = "FIRESTEEL_WORKING_DIRECTORY"
DIRECTORIES_VARIABLE = "FIRESTEEL_DIRECTORIES"
"""The directories that this process holds, where the driver cannot: on another machine."""


class DependenciesMissingError(FiresteelError):
    """The dependencies of the job are not on this machine."""

    is_transient = True


def enter_worker_environment() -> None:
    """Makes the dependencies of the job available in this process, if it is one for a job with dependencies.

    They are first on the module search path, before the directory in which the process was started, and the extracted
    archives are in the working directory. Scripts of installed packages are found as commands.
    """
    _set_search_path()
    directory = os.environ.get(WORKING_DIRECTORY_VARIABLE)
    if directory:
        os.chdir(directory)  # each time: another job with the same dependencies may have had it before, and removed it


@cache
def _set_search_path() -> None:
    for directory in _entries(DIRECTORIES_VARIABLE):
        _hold(directory)
    search_path = _entries(SEARCH_PATH_VARIABLE)
    if search_path:
        sys.path[:] = [*search_path, *(entry for entry in sys.path if entry not in search_path)]
        importlib.invalidate_caches()
        scripts = [str(Path(entry) / "bin") for entry in search_path if (Path(entry) / "bin").is_dir()]
        os.environ["PATH"] = os.pathsep.join([*scripts, os.environ.get("PATH", os.defpath)])


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def _hold(directory: str) -> None:
    """Keeps a directory from being removed while this process lives."""
    try:
        fcntl.flock(os.open(f"{directory}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), fcntl.LOCK_SH)
    except FileNotFoundError:
        pass
    if not Path(directory).is_dir():
        raise DependenciesMissingError(f"The job's dependencies are not on this machine: there is no {directory}.")
