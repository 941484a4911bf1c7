"""What planners push into sources, as far as it has to be done again when a compiled plan is read."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.connector.source import ScanTableSource
from firesteel.types.logical import RowType

__all__ = ["PushDown", "PushedFilters", "PushedNestedProjection", "PushedProjection"]


@dataclass(frozen=True)
class PushDown:
    """A change of a source."""

    def apply(self, source: ScanTableSource) -> ScanTableSource:
        """The changed source. Raises ValidationError if the source no longer does it."""
        changed = self._changed(source)
        if changed is None:
            raise ValidationError(
                f"The source '{source.as_summary_string()}' no longer does what the plan relies on: {self}.",
                hint="Compile the plan again.",
            )
        return changed

    def _changed(self, source: ScanTableSource) -> ScanTableSource | None:
        raise NotImplementedError


@dataclass(frozen=True)
class PushedProjection(PushDown):
    """Some of the columns."""

    columns: tuple[int, ...]

    def _changed(self, source: ScanTableSource) -> ScanTableSource | None:
        return source.with_projection(list(self.columns))


@dataclass(frozen=True)
class PushedNestedProjection(PushDown):
    """Columns, and fields of columns."""

    paths: tuple[tuple[int, ...], ...]
    type: RowType

    def _changed(self, source: ScanTableSource) -> ScanTableSource | None:
        return source.with_nested_projection(list(self.paths), self.type)


@dataclass(frozen=True)
class PushedFilters(PushDown):
    """Conditions: those that were offered, and those of them that the plan evaluates itself."""

    conditions: tuple[Expression, ...]
    remaining: tuple[Expression, ...]

    def _changed(self, source: ScanTableSource) -> ScanTableSource | None:
        found = source.with_filters(list(self.conditions))
        if found is None:
            return source if set(self.conditions) <= set(self.remaining) else None
        changed, rest = found
        # a condition that neither of the two evaluates would be lost
        return changed if set(rest) <= set(self.remaining) else None
