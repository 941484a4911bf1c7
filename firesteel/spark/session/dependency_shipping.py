"""Prepares the Python dependencies of a job on the machines of Spark's executors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from pyspark import SparkContext

from firesteel.runtime.dependencies.bundle import DependencyError
from firesteel.runtime.dependencies.directories import keep_for_a_while
from firesteel.runtime.dependencies.prepared import PreparedDependencies, prepare_dependencies
from firesteel.spark.session.slots import available_slots

__all__ = ["ship_dependencies"]

_TASKS_PER_SLOT = 2
"""So that every machine gets one although Spark does not say where a task runs."""


class _Prepare:
    """The function of the stage that prepares them; pickled to every executor."""

    def __init__(self, artifacts: Mapping[str, bytes], directories: tuple[str, ...]):
        self._artifacts = artifacts
        self._directories = directories

    def __call__(self, _partition: Iterable[int]) -> Iterator[str]:
        """Yields an error, or nothing."""
        try:
            prepared = prepare_dependencies(self._artifacts)
            assert prepared is not None
            with prepared:
                found = tuple(str(directory) for directory in prepared.directories)
                for directory in prepared.directories:
                    keep_for_a_while(directory)
        except DependencyError as error:
            yield error.message
            return
        if found != self._directories:
            yield (
                f"The dependencies are in {os.path.commonpath(found)} on an executor, but in "
                f"{os.path.commonpath(self._directories)} on the driver. TMPDIR must be the same on all machines, and "
                "so must the user and the Python interpreter."
            )


def ship_dependencies(context: SparkContext, artifacts: Mapping[str, bytes], prepared: PreparedDependencies) -> None:
    """Extracts and installs the dependencies on all machines that have free slots; DependencyError if one cannot."""
    tasks = _TASKS_PER_SLOT * max(1, available_slots(context))
    directories = tuple(str(directory) for directory in prepared.directories)
    errors = context.parallelize(range(tasks), tasks).mapPartitions(_Prepare(artifacts, directories)).collect()
    if errors:
        raise DependencyError(errors[0])
