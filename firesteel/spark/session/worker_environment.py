"""The Python workers of a job with dependencies: processes of their own, with its search path and interpreter."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pyspark
from pyspark import SparkContext

import firesteel
from firesteel.process.worker_environment import (
    DEPENDENCIES_VARIABLE,
    DIRECTORIES_VARIABLE,
    SEARCH_PATH_VARIABLE,
    WORKING_DIRECTORY_VARIABLE,
)
from firesteel.runtime.dependencies.bundle import DependencyError
from firesteel.runtime.dependencies.prepared import PreparedDependencies
from firesteel.spark.session.cluster_info import java_pid
from firesteel.spark.session.dependency_shipping import ship_dependencies
from firesteel.spark.session.slots import has_fixed_slots

__all__ = ["WorkerEnvironment", "worker_environment"]

_CHECK = """
import json, sys
from importlib.util import find_spec
missing = [name for name in ("pyspark", "cloudpickle", "firesteel") if find_spec(name) is None]
version = None
if not missing:
    import firesteel
    version = firesteel.__version__
print(json.dumps([list(sys.version_info[:2]), missing, version]))
"""
_CHECK_TIMEOUT_S = 120.0
_KILL_TIMEOUT_S = 5.0
MAX_UNUSED = 8
"""How many environments that no job uses now keep their processes: the next job with one of them starts sooner."""


@dataclass(frozen=True)
class WorkerEnvironment:
    """What Spark starts the Python workers of a job with.

    Spark uses a worker only for functions with the same environment and interpreter. So a job with dependencies
    has workers of its own, which never have loaded a module of another job.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    executable: str | None = None
    prepare: Callable[[], None] = lambda: None
    """Called before each attempt: has the dependencies where the workers will run."""
    release: Callable[[], None] = lambda: None
    """Called when the job has ended."""

    def with_variables(self, variables: Mapping[str, str]) -> WorkerEnvironment:
        """The same environment with further variables."""
        return replace(self, variables={**self.variables, **variables})


class WorkerKeys:
    """Names for the environments of the jobs of this process: one for each set of dependencies.

    >>> keys = WorkerKeys("driver", max_unused=1)
    >>> keys.take("a"), keys.take("a"), keys.take("b")
    ('driver-0-a', 'driver-0-a', 'driver-1-b')
    >>> keys.give_back("a", "driver-0-a"), keys.give_back("a", "driver-0-a"), keys.give_back("b", "driver-1-b")
    ([], [], ['driver-0-a'])
    >>> keys.take("a"), keys.take("b")
    ('driver-2-a', 'driver-1-b')
    """

    def __init__(self, prefix: str, max_unused: int = MAX_UNUSED):
        self._prefix = prefix
        self._max_unused = max_unused
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._keys: dict[str, str] = {}
        """By digest, those that were used last at the end."""
        self._users: Counter[str] = Counter()

    def take(self, digest: str) -> str:
        """The name for a job that starts."""
        with self._lock:
            # never the name of processes that were ended: Spark does not start them again reliably
            key = self._keys.pop(digest, None) or f"{self._prefix}-{next(self._numbers)}-{digest}"
            self._keys[digest] = key
            self._users[key] += 1
            return key

    def give_back(self, digest: str, key: str) -> list[str]:
        """The job has ended; returns names whose processes are to be ended, and that are not used again."""
        with self._lock:
            self._users[key] -= 1
            self._keys[digest] = self._keys.pop(digest)
            unused = [(digest, key) for digest, key in self._keys.items() if self._users[key] == 0]
            ended = unused[: -self._max_unused or None]
            for digest, key in ended:
                del self._keys[digest], self._users[key]
            return [key for _, key in ended]


_workers = WorkerKeys(str(os.getpid()))


def worker_environment(
    context: SparkContext, dependencies: PreparedDependencies | None, artifacts: Mapping[str, bytes] | None = None
) -> WorkerEnvironment:
    """The environment for a job, released with ``WorkerEnvironment.release``; that of all jobs if it needs none.

    DependencyError if the interpreter that the job has chosen cannot run its functions.
    """
    if dependencies is None:
        return WorkerEnvironment()
    variables = dict(context.environment)
    path = [*dependencies.search_path, *_common_path(variables, dependencies.executable)]
    variables |= {
        "PYTHONPATH": os.pathsep.join(path),
        SEARCH_PATH_VARIABLE: os.pathsep.join(dependencies.search_path),
    }
    if dependencies.working_directory is not None:
        variables[WORKING_DIRECTORY_VARIABLE] = dependencies.working_directory
    if dependencies.executable is not None:
        _check_executable(dependencies.executable, path)
    key = _workers.take(dependencies.digest)
    variables[DEPENDENCIES_VARIABLE] = key

    released = threading.Event()

    def release() -> None:
        if released.is_set():
            return
        released.set()
        for unused in _workers.give_back(dependencies.digest, key):
            _end_workers(context, unused)
        dependencies.close()

    if has_fixed_slots(context):
        return WorkerEnvironment(variables, dependencies.executable, release=release)
    variables[DIRECTORIES_VARIABLE] = os.pathsep.join(map(str, dependencies.directories))
    return WorkerEnvironment(
        variables,
        dependencies.executable,
        lambda: ship_dependencies(context, artifacts or {}, dependencies),
        release,
    )


def _common_path(variables: Mapping[str, str], executable: str | None) -> list[str]:
    """The module search path of all workers; another interpreter does not get the packages of this one."""
    path = [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if executable is None:
        return path
    own = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return [entry for entry in path if entry not in own]


def _check_executable(executable: str, path: list[str]) -> None:
    spark = sorted(str(archive) for archive in (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*spark, *path])}
    try:
        done = subprocess.run(  # noqa: S603 - what to run is the user's own choice
            [executable, "-c", _CHECK],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CHECK_TIMEOUT_S,
            check=False,
        )
        version, missing, release = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DependencyError(f"The Python interpreter {executable} cannot be started: {error}.") from None
    except ValueError:
        said = done.stderr.decode(errors="replace").strip()[-2000:]
        raise DependencyError(f"The Python interpreter {executable} cannot run the job's functions:\n{said}") from None
    own = list(sys.version_info[:2])
    if version != own:
        raise DependencyError(
            f"The Python interpreter {executable} has version {'.'.join(map(str, version))}; the job was built with "
            f"{'.'.join(map(str, own))}.",
            hint="Functions are pickled, so both must have the same minor version of Python.",
        )
    if missing:
        raise DependencyError(
            f"The Python interpreter {executable} cannot import {', '.join(missing)}.",
            hint=f"Install firesteel {firesteel.__version__} there; it brings the others along.",
        )
    if release != firesteel.__version__:
        raise DependencyError(
            f"The Python interpreter {executable} has version {release} of Firesteel, not {firesteel.__version__}."
        )


def _end_workers(context: SparkContext, key: str) -> None:
    """Ends the processes with that environment on this machine, which Spark itself would keep."""
    java: Any = java_pid(context) if has_fixed_slots(context) else None
    if java is None:
        return
    found = []
    try:
        for process in psutil.Process(java).children(recursive=True):
            try:
                if process.environ().get(DEPENDENCIES_VARIABLE) == key:
                    process.kill()
                    found.append(process)
            except psutil.Error:
                continue  # it has ended by itself
    except psutil.Error:
        return
    psutil.wait_procs(found, _KILL_TIMEOUT_S)
