"""TaskManager ids: names for the Spark executors that slots run in."""

from __future__ import annotations

from firesteel.runtime.model.messages import RegisterSlot

__all__ = [
    "UNASSIGNED",
    "embedded_task_manager_id",
    "executor_task_manager_id",
    "task_endpoint",
    "task_manager_id",
]

UNASSIGNED = "(unassigned)"
"""The location of a task that is not yet deployed, in Flink's notation."""


def embedded_task_manager_id(port: int) -> str:
    """The one TaskManager of an embedded Spark, whose driver listens on the port.

    >>> embedded_task_manager_id(41234)
    'localhost:41234-embedded'
    """
    return f"localhost:{port}-embedded"


def executor_task_manager_id(host: str, executor_id: str) -> str:
    """The TaskManager that an executor of a Spark cluster is.

    >>> executor_task_manager_id("10.0.0.7", "3")
    '10.0.0.7-3'
    """
    return f"{host}-{executor_id}"


def task_manager_id(registration: RegisterSlot | None) -> str:
    """The TaskManager that a slot runs in."""
    return registration.task_manager or UNASSIGNED if registration is not None else UNASSIGNED


def task_endpoint(registration: RegisterSlot | None) -> str:
    """Host and data port of a slot, as the REST API shows them."""
    if registration is None:
        return UNASSIGNED
    return f"{registration.host}:{registration.data_address[1]}"
