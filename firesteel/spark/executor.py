"""Executes job graphs on Spark: with long-lived tasks, in epochs, or as a batch."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from firesteel.common.job_client import JobClient
from firesteel.config.configuration import Configuration
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.slots import assign_slots
from firesteel.jobmaster.shell.job_preparation import PreparedJob, prepare_job
from firesteel.jobmaster.shell.program_shipping import program_archive, program_roots
from firesteel.process.program_logging import add_program_format
from firesteel.runtime.dependencies.collection import dependency_artifacts
from firesteel.runtime.dependencies.prepared import prepare_dependencies
from firesteel.spark.session.session import get_spark_context, is_single_host

if TYPE_CHECKING:
    from pyspark import SparkContext

    from firesteel.jobmaster.shell.queued_host import QueuedHost
    from firesteel.jobmaster.shell.runner import JobMasterRunner

__all__ = ["SparkPipelineExecutor", "ship_program"]

_jobs: WeakSet[JobMasterRunner] = WeakSet()
"""This process's jobs, for as long as they are referenced."""
_starting: set[object] = set()
"""Jobs that are being started."""
_lock = threading.Lock()


class SparkPipelineExecutor:
    """Runs jobs on the active or an embedded Spark.

    An attempt of a pipelined job is one barrier stage, which holds its slots. Epochs and batches are ordinary stages:
    they take as many slots as there are, and give them back.
    """

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts the job and returns its client."""
        # before anything is started: errors of the program are raised at once
        add_program_format(job_graph.configuration)
        if not (py4j := logging.getLogger("py4j")).level:
            py4j.setLevel(logging.WARNING)  # at INFO it reports each connection that it closes
        single_host = is_single_host(configuration)
        artifacts = dependency_artifacts(configuration)
        with ExitStack() as prepared:
            dependencies = prepare_dependencies(artifacts)
            if dependencies is not None:
                prepared.enter_context(dependencies)
            job = prepare_job(job_graph, single_host=single_host, artifacts=artifacts, dependencies=dependencies)
            prepared.pop_all()
        files: list[Any] = []
        try:
            with _starts() as others_run:
                execution = job.job_graph.execution
                slots = assign_slots(job.job_graph).total if execution.traits.is_long_lived else 1
                context = get_spark_context(configuration, slots, others_run, meanwhile=_import_hosts)
                if not single_host:
                    ship_program(context)
                if execution.kind is not JobExecution.BATCH:
                    _write_rows(job.job_graph, files)
                from firesteel.spark.host_creation import create_host

                host = create_host(job.job_graph, context, dependencies=job.dependencies, artifacts=job.artifacts)
                runner = _runner_on(host, job)
        except BaseException:
            job.discard()
            _remove(files)
            raise
        runner.result_future().add_done_callback(lambda _: _remove(files))
        # here, in the order in which jobs are submitted: their own threads come in any order
        host.take_place()
        runner.start()
        return JobClient(runner)


@contextmanager
def _starts() -> Iterator[Callable[[], bool]]:
    """While a job is started; yields a check whether others run or are started, whose Spark must not be stopped."""
    own = object()

    def others_run() -> bool:
        with _lock:
            return len(_starting) > 1 or any(not job.is_over for job in _jobs)

    with _lock:
        _starting.add(own)
    try:
        yield others_run
    finally:
        with _lock:
            _starting.discard(own)


def _import_hosts() -> None:
    """Imports what a job needs once Spark has been started."""
    import firesteel.jobmaster.shell.runner
    import firesteel.spark.host_creation  # noqa: F401


def _runner_on(host: QueuedHost, job: PreparedJob) -> JobMasterRunner:
    from firesteel.jobmaster.shell.runner import JobMasterRunner

    try:
        runner = JobMasterRunner(job, host)
    except BaseException:
        host.close()
        raise
    with _lock:
        _jobs.add(runner)
    return runner


def ship_program(context: SparkContext) -> None:
    """Has the executors get the modules beside the program, which only this machine has."""
    archive = program_archive(program_roots())
    if archive is None:
        return
    name = f"firesteel-program-{hashlib.sha256(archive).hexdigest()[:16]}.zip"
    if name in context._python_includes:
        return
    # executors fetch it from here whenever they start, so it lies where Spark removes it at its own end
    path = Path(context._temp_dir) / name
    path.write_bytes(archive)
    context.addPyFile(str(path))


def _write_rows(job_graph: JobGraph, files: list[Any]) -> None:
    """Has Spark write the rows of DataFrames to files, before the job's own tasks take all its slots."""
    for node in job_graph.nodes():
        source: Any = node.spec.get_source()
        if getattr(source, "reads_rows", False):
            from pyspark.sql import SparkSession  # takes its time, and most jobs do without

            files += [source.write_files(SparkSession.builder.getOrCreate())]


def _remove(files: list[Any]) -> None:
    for written in files:
        written.remove()
