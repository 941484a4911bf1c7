"""The sink of a lake's table."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.lakes.committable import LakeCommittable, combine
from firesteel.connectors.lakes.committer import CommitRetries, LakeCommitter
from firesteel.connectors.lakes.errors import SchemaMismatchError, nearest
from firesteel.connectors.lakes.table import LakeTable
from firesteel.connectors.lakes.writer import LakeWriter
from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, WriterContext
from firesteel.types.logical import RowType

__all__ = ["SCHEMA_EVOLUTIONS", "LakeSink", "check_columns"]

SCHEMA_EVOLUTIONS = ("refuse", "apply")


class LakeSink(Sink):
    """Writes rows to a table exactly once: writers write data files, and one committer commits all of a checkpoint."""

    commits_globally: ClassVar[bool] = True
    name: ClassVar[str] = "Lake Sink"

    def __init__(
        self,
        table: LakeTable,
        *,
        key: Sequence[str] = (),
        retries: CommitRetries | None = None,
        overwrites: bool = False,
        by_partition: bool = False,
    ) -> None:
        self.table = table
        self.key = tuple(key)
        self.retries = retries or CommitRetries()
        self.overwrites = overwrites
        self.by_partition = by_partition

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A writer of data files, or with a key of changes."""
        return LakeWriter(copy(self.table), context, self.key, overwrites=self.overwrites)

    def combine_committables(
        self, committables: Sequence[LakeCommittable], context: WriterContext, checkpoint_id: int | None
    ) -> list[LakeCommittable]:
        """The files of all writers as one commit."""
        return [combine(committables, context, checkpoint_id)]

    def create_committer(self) -> Committer[LakeCommittable]:
        """What commits files to the table."""
        return LakeCommitter(
            copy(self.table), self.key, self.retries, overwrites=self.overwrites, by_partition=self.by_partition
        )

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """Exactly once."""
        return DeliveryGuarantee.EXACTLY_ONCE

    def needs_checkpoints(self) -> bool:
        """Without them nothing would be seen before the stream ends."""
        return True


def check_columns(table: LakeTable, written: RowType, schema_evolution: str, *, fits: Any) -> None:
    """Compares the columns that are written with those of the table, and adds what is missing if that is wanted.

    ``fits(written type, type of the table)`` says whether values of the one can be stored as the other.
    """
    if schema_evolution not in SCHEMA_EVOLUTIONS:
        raise InvalidProgramError(
            f"'schema-evolution' = '{schema_evolution}' is not known.", hint=f"Known: {', '.join(SCHEMA_EVOLUTIONS)}."
        )
    there = {part.name: part.type for part in table.row_type().fields}
    new = [part for part in written.fields if part.name not in there]
    if new and schema_evolution == "apply":
        table.add_columns(RowType(list(new), nullable=False))
        there.update((part.name, part.type) for part in new)
        new = []
    problems = [f"{part.name} {part.type}: not in the table" for part in new]
    names = [part.name for part in new]
    for part in written.fields:
        if part.name in there and not fits(part.type, there[part.name]):
            problems.append(f"{part.name} {part.type}: is {there[part.name]} in the table")
            names.append(part.name)
    given = {part.name for part in written.fields}
    for name, type_ in there.items():
        if name not in given and not type_.nullable:
            problems.append(f"{name} {type_}: is required by the table, and not written")
            names.append(name)
    if problems:
        hint = next((found for part in new if (found := nearest(part.name, there))), None)
        if new and hint is None:
            hint = "With 'schema-evolution' = 'apply' columns that the table lacks are added to it."
        raise SchemaMismatchError(
            f"The columns do not fit those of {table.describe()}:\n" + "\n".join(f"  {line}" for line in problems),
            columns=names,
            hint=hint,
        )
