"""The answers of Flink 2.3 as shapes: see `shown_jobs.Shape`. Fields of Firesteel's own are optional."""

from __future__ import annotations

from tests.support.rest.shown_jobs import Shape

__all__ = ["SHAPES"]

_EXECUTION_STATES = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
)
_JOB_STATES = (
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
)
_STATE_COUNTS = dict.fromkeys(_EXECUTION_STATES, "int")
_IO: Shape = {
    "read-bytes": "long",
    "read-bytes-complete": "boolean",
    "write-bytes": "long",
    "write-bytes-complete": "boolean",
    "read-records": "long",
    "read-records-complete": "boolean",
    "write-records": "long",
    "write-records-complete": "boolean",
    "accumulated-backpressured-time": "long",
    "accumulated-idle-time": "long",
    "accumulated-busy-time": "double",
}
_STATISTICS = dict.fromkeys(("min", "max", "avg", "sum", "median", "p25", "p75", "p95"), "long")
_DURATIONS = dict.fromkeys(("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING"), "long")
_AGGREGATED: Shape = {
    "metrics": {name: _STATISTICS for name in _IO if not name.endswith("-complete")},
    "status-duration": dict.fromkeys(_DURATIONS, _STATISTICS),
}
_PLAN: Shape = {
    "jid": "string",
    "name": "string",
    "type": "string",
    "nodes": [
        {
            "id": "string",
            "operator": "string",
            "parallelism": "long",
            "operator_strategy": "string",
            "description": "string",
            "optimizer_properties": {},
            "inputs?": [
                {
                    "id": "string",
                    "num": "long",
                    "exchange": "string",
                    "ship_strategy": "string",
                    "local_strategy?": "string",
                    "exchange_reason?": "string",
                }
            ],
        }
    ],
    "execution?": {"kind": "string", "reason": "string"},
}
_JOB: Shape = {
    "jid": "string",
    "name": "string",
    "jobType": "string",
    "schedulerType": "string",
    "start-time": "long",
    "end-time": "long",
    "duration": "long",
    "state": "string",
    "last-modification": "long",
    "tasks": dict.fromkeys(("total", *(state.lower() for state in _EXECUTION_STATES)), "int"),
    "pending-operators": "int",
}
_ATTEMPT: Shape = {
    "subtask": "int",
    "status": "string",
    "attempt": "int",
    "endpoint": "string",
    "start-time": "long",
    "start_time": "long",
    "end-time": "long",
    "duration": "long",
    "metrics": _IO,
    "taskmanager-id": "string",
    "status-duration": _DURATIONS,
}
_MIN_MAX: Shape = {
    **dict.fromkeys(("min", "max", "avg"), "long"),
    **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), "double"),
}
_TOTALS: Shape = dict.fromkeys(
    (
        "latest_ack_timestamp",
        "checkpointed_size",
        "state_size",
        "end_to_end_duration",
        "alignment_buffered",
        "processed_data",
        "persisted_data",
    ),
    "long",
) | {"num_subtasks": "int", "num_acknowledged_subtasks": "int"}
_TASK_CHECKPOINT: Shape = {"id": "long", "status": "string", **_TOTALS}
_CHECKPOINT: Shape = {
    "className": "string",
    "id": "long",
    "status": "string",
    "is_savepoint": "boolean",
    "savepointFormat": "string?",
    "trigger_timestamp": "long",
    **_TOTALS,
    "checkpoint_type": "string",
    "tasks": {"*": _TASK_CHECKPOINT},
    "external_path?": "string",
    "discarded?": "boolean",
    "failure_timestamp?": "long",
    "failure_message?": "string",
}
_SUBTASK_SUMMARY: Shape = {
    "checkpointed_size": _MIN_MAX,
    "state_size": _MIN_MAX,
    "end_to_end_duration": _MIN_MAX,
    "checkpoint_duration": {"sync": _MIN_MAX, "async": _MIN_MAX},
    "alignment": {"buffered": _MIN_MAX, "processed": _MIN_MAX, "persisted": _MIN_MAX, "duration": _MIN_MAX},
    "start_delay": _MIN_MAX,
}
_ACCUMULATOR: Shape = {"name": "string", "type": "string", "value": "string"}
_EXCEPTION: Shape = {
    "exceptionName": "string",
    "stacktrace": "string",
    "timestamp": "long",
    "failureLabels": {"*": "string"},
    "taskName?": "string",
    "endpoint?": "string",
    "taskManagerId?": "string",
}
_VERTEX = "/jobs/:jobid/vertices/:vertexid"
_METRICS: Shape = [{"id": "string", "value?": "string"}]
_AGGREGATES: Shape = [{"id": "string", **{f"{name}?": "double" for name in ("min", "max", "avg", "sum", "skew")}}]
_LEVELS: Shape = {"backpressureLevel": "string", "backpressure-level": "string"}

SHAPES: dict[str, Shape] = {
    "/jobs": {"jobs": [{"id": "string", "status": "string"}]},
    "/jobs/overview": {"jobs": [_JOB]},
    "/jobs/:jobid": {
        "jid": "string",
        "application-id": "string",
        "name": "string",
        "isStoppable": "boolean",
        "state": "string",
        "job-type": "string",
        "schedulerType": "string",
        "start-time": "long",
        "end-time": "long",
        "duration": "long",
        "maxParallelism": "long",
        "now": "long",
        "timestamps": dict.fromkeys(_JOB_STATES, "long"),
        "vertices": [
            {
                "id": "string",
                "slotSharingGroupId": "string",
                "name": "string",
                "maxParallelism": "int",
                "parallelism": "int",
                "status": "string",
                "start-time": "long",
                "end-time": "long",
                "duration": "long",
                "tasks": _STATE_COUNTS,
                "metrics": _IO,
            }
        ],
        "status-counts": _STATE_COUNTS,
        "plan": _PLAN,
        "pending-operators": "int",
    },
    "/jobs/:jobid/plan": {"plan": _PLAN},
    "/jobs/:jobid/status": {"status": "string"},
    "/jobs/:jobid/config": {
        "jid": "string",
        "name": "string",
        "execution-config": {
            "restart-strategy": "string",
            "job-parallelism": "int",
            "object-reuse-mode": "boolean",
            "user-config": {"*": "string"},
        },
    },
    "/jobs/:jobid/execution-result": {
        "status": {"id": "string"},
        "job-execution-result?": {
            "id": "string",
            "name": "string",
            "application-status": "string",
            "accumulator-results": {"*": "string"},
            "net-runtime": "long",
            "application-id": "string",
            "start-time": "long",
            "end-time": "long",
            "failure-cause?": {"class": "string", "stack-trace": "string", "serialized-throwable": "string"},
        },
    },
    "/jobs/:jobid/accumulators": {
        "job-accumulators": [_ACCUMULATOR],
        "user-task-accumulators": [_ACCUMULATOR],
        "serialized-user-task-accumulators": {"*": "string"},
    },
    "/jobs/:jobid/exceptions": {
        "exceptionHistory": {
            "entries": [{**_EXCEPTION, "concurrentExceptions": [_EXCEPTION]}],
            "truncated": "boolean",
        }
    },
    "/jobs/:jobid/jobmanager/config": [{"key": "string", "value": "string"}],
    "/jobs/:jobid/jobmanager/environment": {
        "jvm": {"version": "string", "arch": "string", "options": ["string"]},
        "classpath": ["string"],
    },
    "/jobs/:jobid/resource-requirements": {"*": {"parallelism": {"lowerBound": "int", "upperBound": "int"}}},
    "/jobs/:jobid/checkpoints": {
        "counts": dict.fromkeys(("restored", "total", "in_progress", "completed", "failed"), "long"),
        "summary": dict.fromkeys(
            (
                "checkpointed_size",
                "state_size",
                "end_to_end_duration",
                "alignment_buffered",
                "processed_data",
                "persisted_data",
            ),
            _MIN_MAX,
        ),
        "latest": {
            **{key: {"null": _CHECKPOINT} for key in ("completed", "savepoint", "failed")},
            "restored": {
                "null": {
                    "id": "long",
                    "restore_timestamp": "long",
                    "is_savepoint": "boolean",
                    "external_path": "string",
                }
            },
        },
        "history": [_CHECKPOINT],
    },
    "/jobs/:jobid/checkpoints/config": {
        "mode": "string",
        "interval": "long",
        "timeout": "long",
        "min_pause": "long",
        "max_concurrent": "long",
        "externalization": {"enabled": "boolean", "delete_on_cancellation": "boolean"},
        "state_backend": "string",
        "checkpoint_storage": "string",
        "unaligned_checkpoints": "boolean",
        "tolerable_failed_checkpoints": "int",
        "aligned_checkpoint_timeout": "long",
        "checkpoints_after_tasks_finish": "boolean",
        "state_changelog_enabled": "boolean",
        "changelog_periodic_materialization_interval": "long",
        "changelog_storage": "string",
    },
    "/jobs/:jobid/checkpoints/details/:checkpointid": _CHECKPOINT,
    "/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid": {
        **_TASK_CHECKPOINT,
        "summary": _SUBTASK_SUMMARY,
        "subtasks": [
            {
                "className": "string",
                "index": "int",
                "status": "string",
                **{f"{name}?": "long" for name in ("ack_timestamp", "end_to_end_duration", "start_delay")},
                **{f"{name}?": "long" for name in ("checkpointed_size", "state_size")},
                "checkpoint?": {"sync": "long", "async": "long"},
                "alignment?": {"buffered": "long", "processed": "long", "persisted": "long", "duration": "long"},
                "unaligned_checkpoint?": "boolean",
                "aborted?": "boolean",
            }
        ],
    },
    _VERTEX: {
        "id": "string",
        "name": "string",
        "parallelism": "int",
        "maxParallelism": "int",
        "now": "long",
        "subtasks": [_ATTEMPT],
        "aggregated": _AGGREGATED,
    },
    f"{_VERTEX}/accumulators": {"id": "string", "user-accumulators": [_ACCUMULATOR]},
    f"{_VERTEX}/subtasks/accumulators": {
        "id": "string",
        "parallelism": "int",
        "subtasks": [{"subtask": "int", "attempt": "int", "endpoint": "string", "user-accumulators": [_ACCUMULATOR]}],
    },
    f"{_VERTEX}/subtasktimes": {
        "id": "string",
        "name": "string",
        "now": "long",
        "subtasks": [
            {
                "subtask": "int",
                "endpoint": "string",
                "duration": "long",
                "timestamps": dict.fromkeys(_EXECUTION_STATES, "long"),
            }
        ],
    },
    f"{_VERTEX}/taskmanagers": {
        "id": "string",
        "name": "string",
        "now": "long",
        "taskmanagers": [
            {
                "endpoint": "string",
                "status": "string",
                "start-time": "long",
                "end-time": "long",
                "duration": "long",
                "metrics": _IO,
                "status-counts": _STATE_COUNTS,
                "taskmanager-id": "string",
                "aggregated": _AGGREGATED,
            }
        ],
    },
    f"{_VERTEX}/backpressure": {
        "status": "string",
        **_LEVELS,
        "end-timestamp": "long",
        "subtasks": [
            {"subtask": "int", **_LEVELS, "ratio": "double", "idleRatio": "double", "busyRatio": "double"},
        ],
    },
    f"{_VERTEX}/subtasks/:subtaskindex": _ATTEMPT,
    f"{_VERTEX}/subtasks/:subtaskindex/attempts/:attempt": _ATTEMPT,
    f"{_VERTEX}/subtasks/:subtaskindex/attempts/:attempt/accumulators": {
        "subtask": "int",
        "attempt": "int",
        "id": "string",
        "user-accumulators": [_ACCUMULATOR],
    },
    f"{_VERTEX}/watermarks": _METRICS,
    f"{_VERTEX}/metrics": _METRICS,
    f"{_VERTEX}/subtasks/metrics": _AGGREGATES,
    f"{_VERTEX}/subtasks/:subtaskindex/metrics": _METRICS,
    f"{_VERTEX}/jm-operator-metrics": _METRICS,
    "/jobs/:jobid/metrics": _METRICS,
    "/jobs/metrics": _AGGREGATES,
}
