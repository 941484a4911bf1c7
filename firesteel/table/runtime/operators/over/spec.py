"""What operators of OVER are made with."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.bound.session import Session
from firesteel.table.plan.over import BoundKind, OverGroup
from firesteel.table.runtime.operators.over.calls import Calls
from firesteel.types.logical import RowType

__all__ = ["OverSpec"]


@dataclass(frozen=True)
class OverSpec(OperatorSpec):
    """The calls of one window over each row; the columns of the row come first."""

    group: OverGroup
    row_type: RowType
    output_type: RowType
    output_rowtime: int | None = None
    ttl_ms: int = 0
    session: Session = field(default_factory=Session)
    per_row: bool = False
    """Whether each row is a change of its own, without mini-batches."""

    @property
    def time(self) -> int:
        """The column by which rows are sorted."""
        return self.group.order[0].index

    @property
    def preceding(self) -> int | None:
        """How many rows, or milliseconds, before a row belong to its window; None for all."""
        lower = self.group.frame.lower
        if lower.kind is BoundKind.UNBOUNDED_PRECEDING:
            return None
        return int(lower.offset) if lower.kind is BoundKind.PRECEDING else 0

    def calls(self, session: Session | None = None) -> Calls:
        """What computes the results; raises ValidationError for functions that streams do not have."""
        types = [part.type for part in self.row_type.fields]
        return Calls(self.group.calls, types, self.time, self.preceding is None, session or self.session)
