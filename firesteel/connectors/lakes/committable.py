"""What a writer of a lake's table hands to the committer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.spi.sink import WriterContext

__all__ = ["END_OF_INPUT", "LakeCommittable", "combine"]

END_OF_INPUT = 2**63 - 1
"""The number of what is committed at the end of the input, without a checkpoint; as in Iceberg's sink for Flink."""


@dataclass(frozen=True)
class LakeCommittable:
    """Data files that become visible together.

    ``transaction`` and ``number`` identify it for as long as the table exists: an attempt of a job draws its id anew,
    and within an attempt numbers grow. So a committable that was committed before a failure is recognized, also if the
    job was restored from an older checkpoint and has reached the same checkpoint id again.
    """

    sink_id: str
    attempt_id: str
    attempt_number: int
    writer: str
    number: int
    files: tuple[Mapping[str, Any], ...] = ()
    """The data files, as the table format describes them."""
    changes: tuple[str, ...] = ()
    """Files of rows that are inserted, updated and deleted by their key, in order."""

    @property
    def transaction(self) -> str:
        """The same for all committables of a writer in an attempt."""
        return f"{self.sink_id}-{self.attempt_id}-{self.writer}"

    @property
    def id(self) -> str:
        return f"{self.transaction}-{self.number}"


def combine(
    committables: Sequence[LakeCommittable], context: WriterContext, checkpoint_id: int | None
) -> LakeCommittable:
    """One committable for those of all writers."""
    first = min(committables, key=lambda one: one.writer)
    ordered = sorted(committables, key=lambda one: (one.attempt_number, one.writer, one.number))
    return LakeCommittable(
        first.sink_id,
        context.attempt_id,
        context.attempt_number,
        "all",
        END_OF_INPUT if checkpoint_id is None else checkpoint_id,
        tuple(file for one in ordered for file in one.files),
        tuple(path for one in ordered for path in one.changes),
    )
