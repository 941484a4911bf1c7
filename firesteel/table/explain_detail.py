"""ExplainDetail: what EXPLAIN shows besides the plan."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExplainDetail"]


class ExplainDetail(IntEnum):
    """What EXPLAIN shows besides the plan."""

    ESTIMATED_COST = 0
    """Estimated numbers of rows, where they are known."""
    CHANGELOG_MODE = 1
    """The kinds of rows that each node produces."""
    JSON_EXECUTION_PLAN = 2
    """The operators of the job as JSON."""
    PLAN_ADVICE = 3
    """Warnings of what may become expensive."""
