"""Transactional ids: they name the writer, so that lingering transactions can be detected."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["TransactionalId"]

_NAMES = re.compile(r"-([0-9a-f]+)-([0-9a-f]+)-([0-9]+)-([0-9a-f]+)-([0-9]+)")


class TransactionalId(NamedTuple):
    """The parts of a transactional id: ``<prefix>-<sink>-<attempt>-<subtask>-<writer>-<number>``.

    A writer draws its part itself: where a task may be run twice at a time, as in a batch, no run meets another. The
    number identifies the writer's producer.
    """

    prefix: str
    sink_id: str
    attempt_id: str
    subtask: int
    writer_id: str
    number: int

    def __str__(self) -> str:
        return "-".join(map(str, self))

    @staticmethod
    def parse(text: str, prefix: str) -> TransactionalId | None:
        """The parts of an id; None if it is of another prefix, perhaps one that begins alike."""
        match = _NAMES.fullmatch(text, len(prefix)) if text.startswith(prefix) else None
        if match is None:
            return None
        sink_id, attempt_id, subtask, writer_id, number = match.groups()
        return TransactionalId(prefix, sink_id, attempt_id, int(subtask), writer_id, int(number))
