"""When a task may be scheduled, seen from its inputs."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Whether a task waits for one consumable input or for all of them.

    For compatibility with programs that import it; unused, as in Flink since 1.13.
    """

    ANY = 0
    ALL = 1
