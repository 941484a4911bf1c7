"""Creates the AttemptHost that runs a job on Spark, and its slot allocation."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark import SparkContext

from firesteel.common.errors import InvalidProgramError
from firesteel.execution.batch.host import BatchHost
from firesteel.execution.epochs.host import EpochHost
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.host import AttemptHost
from firesteel.jobmaster.shell.queued_host import QueuedHost
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.runtime.dependencies.prepared import PreparedDependencies
from firesteel.runtime.network.tls_settings import TlsSettings
from firesteel.spark.blocking.stage_runner import SparkStageRunner
from firesteel.spark.pipelined.host import SparkHost
from firesteel.spark.session.cluster_info import embedded_task_manager
from firesteel.spark.session.slots import allocator_of, has_fixed_slots, is_allocated_dynamically
from firesteel.spark.session.worker_environment import worker_environment

__all__ = ["create_host"]


def create_host(
    job_graph: JobGraph,
    context: SparkContext,
    slots: SlotAllocator | None = None,
    *,
    memory_limit: int | None = None,
    tls: TlsSettings | None = None,
    dependencies: PreparedDependencies | None = None,
    artifacts: Mapping[str, bytes] | None = None,
) -> QueuedHost:
    """The host for a job: with long-lived tasks, in epochs, or as a batch; it waits for slots that others hold.

    ``slots`` gives out the context's slots, by default the one for all jobs of this process. ``memory_limit`` is how
    many bytes each slot's process may have, regardless of the job's configuration; ``tls`` is how its connections are
    encrypted even if the job does not configure it (long-lived tasks only: others exchange everything through Spark).
    The ``dependencies`` of the job, made from its ``artifacts``, are closed with the host.
    """
    execution = job_graph.execution.kind
    inner: AttemptHost
    if execution is JobExecution.BATCH:
        inner = BatchHost(SparkStageRunner(context, environment=worker_environment(context, dependencies, artifacts)))
    elif execution is JobExecution.EPOCHS:
        inner = EpochHost(SparkStageRunner(context, environment=worker_environment(context, dependencies, artifacts)))
    else:
        if is_allocated_dynamically(context) and not has_fixed_slots(context):
            raise InvalidProgramError(
                f"Job '{job_graph.job_name}' needs all its slots at once and for as long as it runs. Spark cannot "
                "guarantee them with spark.dynamicAllocation.enabled.",
                hint="Run it in epochs (execution.exchange: spark) or as a batch, or on a Spark with a fixed number of "
                "executors.",
            )
        tls = tls or TlsSettings.of(job_graph.configuration)
        environment = worker_environment(context, dependencies, artifacts)
        inner = SparkHost(context, memory_limit=memory_limit, tls=tls, environment=environment)
    is_elastic = not job_graph.execution.traits.is_long_lived
    return QueuedHost(
        inner,
        slots or allocator_of(context),
        job_graph.job_id,
        is_elastic=is_elastic,
        task_manager=(embedded_task_manager(context) or "") if is_elastic else "",
    )
