"""ResultKind: whether the result of a statement has content."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ResultKind"]


class ResultKind(IntEnum):
    """Whether the result of a statement has content besides ``OK``."""

    SUCCESS = 0
    """Of DDL and USE: the only row is ``OK``."""
    SUCCESS_WITH_CONTENT = 1
    """Of queries, INSERT, SHOW, DESCRIBE and EXPLAIN."""
