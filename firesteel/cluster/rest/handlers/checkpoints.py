"""REST handlers for checkpoints."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.cluster.diagnostics.known_jobs import KnownJobs, find_job, find_number, find_vertex
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.config import checkpointing_options
from firesteel.jobmaster.checkpoints.settings import CheckpointRetention, CheckpointSettings
from firesteel.rest import checkpoints as rest
from firesteel.runtime.state.registry import BACKENDS

__all__ = ["routes"]

_NEVER = 2**63 - 1
"""What Flink has for an interval where no checkpoints are taken by themselves."""


def routes(jobs: KnownJobs) -> list[Route]:
    handlers = _CheckpointHandlers(jobs)
    return [
        Route(rest.CHECKPOINTS, handlers.statistics),
        Route(rest.CHECKPOINT_CONFIG, handlers.config),
        Route(rest.CHECKPOINT_DETAILS, handlers.details),
        Route(rest.CHECKPOINT_SUBTASKS, handlers.subtasks),
    ]


class _CheckpointHandlers:
    def __init__(self, jobs: KnownJobs):
        self._jobs = jobs

    def statistics(self, request: RestRequest[Any]) -> rest.CheckpointingStatistics:
        statistics = find_job(self._jobs, request).checkpoint_statistics()
        return msgspec.convert(statistics.to_json(), rest.CheckpointingStatistics)

    def config(self, request: RestRequest[Any]) -> rest.CheckpointConfig:
        view = find_job(self._jobs, request)
        configuration = view.configuration
        settings = CheckpointSettings() if view.snapshot is None else view.snapshot.checkpoint_settings
        backend = configuration.get(checkpointing_options.STATE_BACKEND)
        retention = settings.retention
        return rest.CheckpointConfig(
            mode="exactly_once" if settings.exactly_once else "at_least_once",
            interval=_NEVER if settings.interval is None else settings.interval,
            timeout=settings.timeout,
            min_pause=settings.min_pause,
            max_concurrent=settings.max_concurrent,
            externalization=rest.Externalization(
                retention is not CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
                retention is not CheckpointRetention.RETAIN_ON_CANCELLATION,
            ),
            state_backend=BACKENDS[backend].api_name if backend in BACKENDS else backend,
            checkpoint_storage="FileSystemCheckpointStorage",
            unaligned_checkpoints=settings.unaligned,
            tolerable_failed_checkpoints=settings.tolerable_failures,
            aligned_checkpoint_timeout=settings.aligned_timeout,
            checkpoints_after_tasks_finish=settings.after_tasks_finish,
        )

    def details(self, request: RestRequest[Any]) -> rest.Checkpoint:
        view = find_job(self._jobs, request)
        checkpoint_id = find_number(request, "checkpointid")
        answer = view.checkpoint_statistics().details(checkpoint_id)
        if answer is None:
            raise _not_found(checkpoint_id)
        checkpoint = msgspec.convert(answer, rest.Checkpoint)
        for vertex in view.vertices():
            # a page that shows the checkpoint needs every vertex of the job
            if vertex.id not in checkpoint.tasks:
                nothing = (0, 0, 0, 0, 0, 0, vertex.parallelism, 0)
                checkpoint.tasks[vertex.id] = rest.TaskCheckpoint(checkpoint_id, checkpoint.status, -1, *nothing)
        return checkpoint

    def subtasks(self, request: RestRequest[Any]) -> rest.TaskCheckpointWithSubtasks:
        view = find_job(self._jobs, request)
        checkpoint_id = find_number(request, "checkpointid")
        vertex_id = find_vertex(view, request).id
        answer = view.checkpoint_statistics().subtask_details(checkpoint_id, vertex_id)
        if answer is None:
            raise _not_found(checkpoint_id)
        return msgspec.convert(answer, rest.TaskCheckpointWithSubtasks)


def _not_found(checkpoint_id: int) -> RestError:
    return RestError(404, f"Could not find checkpointing statistics for checkpoint {checkpoint_id}.")
