"""Loads a submitted job: unpickles it, adds the cluster's settings, checks and prepares it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import cloudpickle

from firesteel.cluster.ha.services import JobSubmission
from firesteel.common.errors import (
    FiresteelError,
    TaskFailure,
)
from firesteel.config.configuration import Configuration
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.epoch_settings import EpochSettings, as_epochs
from firesteel.jobmaster.shell.job_preparation import PreparedJob, prepare_job
from firesteel.runtime.dependencies.prepared import prepare_dependencies
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.slot.artifacts import importable

__all__ = ["JobLoadError", "JobLoader", "failure_of_preparation", "lasting_id"]

_CLUSTER_DEFAULTS = (
    "execution.checkpointing.",
    "heartbeat.",
    "jobmanager.",
    "metrics.",
    "restart-strategy",
    "s3.",
    "s3a.",
    "fs.s3a.",
    "slot.",
    "state.",
    "task.",
    "taskmanager.",
)
"""The options that a job takes from the cluster's configuration if its own does not set them, as in Flink."""


class JobLoadError(FiresteelError):
    """What was submitted cannot be unpickled."""


class JobLoader:
    """Prepares jobs as one cluster does. All of it may run the program's own code.

    Jobs that name no place for their checkpoints get ``checkpoint_directory``, which must outlive the JobManager.
    """

    def __init__(self, configuration: Configuration, checkpoint_directory: str | None = None):
        self._defaults = {
            key: value for key, value in configuration.to_dict().items() if key.startswith(_CLUSTER_DEFAULTS)
        }
        self._checkpoint_directory = checkpoint_directory

    def load(
        self,
        submission: JobSubmission,
        taken_over: Sequence[tuple[int, str]] | None = None,
        check: Callable[[JobGraph], None] = lambda _: None,
    ) -> PreparedJob:
        """The job, ready to run; ``taken_over`` are the checkpoints that an earlier JobMaster has registered.

        Raises any error of the job, or of what it needs here; `end_of_job` decides which of them ends the job.
        ``check`` may raise something as well, before anything of the job is touched where its state is.
        """
        with ExitStack() as prepared:
            dependencies = prepare_dependencies(submission.artifacts)
            if dependencies is not None:
                prepared.enter_context(dependencies)
            with importable(submission.artifacts):
                job_graph = self._with_defaults(_unpickled(submission))
                check(job_graph)
                job = prepare_job(
                    job_graph,
                    single_host=self._checkpoint_directory is None,
                    default_directory=self._checkpoint_directory,
                    taken_over=taken_over,
                    artifacts=submission.artifacts,
                    dependencies=dependencies,
                )
            prepared.pop_all()
            return job

    def _with_defaults(self, job_graph: JobGraph) -> JobGraph:
        configuration = Configuration.from_dict(self._defaults).add_all(job_graph.configuration)
        return replace(job_graph, configuration=configuration)


def _unpickled(submission: JobSubmission) -> JobGraph:
    try:
        job_graph = cloudpickle.loads(submission.serialized)
    except ModuleNotFoundError as error:
        raise JobLoadError(
            f"Job '{submission.job_name}' cannot be loaded: the cluster has no module '{error.name}'.",
            hint="Ship the module with -pyfs or add_python_file, or its package with -pyreq or "
            "set_python_requirements; or install it where the cluster runs.",
        ) from error
    except BaseException as error:  # it runs the program's code, which may even exit
        raise JobLoadError(
            f"Job '{submission.job_name}' cannot be loaded: {type(error).__name__}: {error}",
            hint="Client and cluster must have the same versions of Firesteel, Python and the packages that the "
            "program uses.",
        ) from error
    if not isinstance(job_graph, JobGraph):
        raise JobLoadError(
            f"The submission of job '{submission.job_name}' contains a {type(job_graph).__name__} instead of a "
            "JobGraph.",
            hint="Submit programs with firesteel run.",
        )
    return replace(job_graph, job_id=submission.job_id)


def lasting_id(job_graph: JobGraph) -> str | None:
    """What two runs have in common of which the second continues the first, so that they must not run at once."""
    if job_graph.execution.kind is not JobExecution.EPOCHS:
        return None
    epochs = as_epochs(job_graph)
    return epochs.job_id if EpochSettings.from_configuration(epochs.configuration).resumes else None


def failure_of_preparation(error: BaseException) -> TaskFailure:
    """Why a job could not be prepared, for display."""
    failure = describe_failure(error)
    if isinstance(error, FiresteelError):
        return replace(failure, hint=error.hint, cause=error)
    return failure
