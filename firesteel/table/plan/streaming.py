"""The nodes of streaming plans that queries do not name: Calc, watermarks, sinks and what is before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from firesteel.common.types import RowKind
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Expression, InputRef, walk
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.sink import DynamicTableSink
from firesteel.table.connector.watermark_options import WatermarkParams
from firesteel.table.plan.nodes import ChangeKeeping, Keys, LogicalNode, Projection, SingleInput, SortKey
from firesteel.types.logical import RowType

__all__ = ["Calc", "FinalRows", "NamedQuery", "Sink", "SinkAbilities", "WatermarkAssigner", "inputs_of", "uid_below"]


@dataclass(frozen=True)
class Calc(Projection):
    """Rows for which a condition is true, then expressions over each of them."""

    condition: Expression | None = None

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        # a row that fulfils the condition no longer is taken back by its UPDATE_BEFORE alone
        wanted = before_wanted or self.condition is not None
        return wanted, (wanted,)

    def describe(self) -> str:
        parts = (
            str(expression) if str(expression) == name else f"{expression} AS {name}"
            for expression, name in zip(self.expressions, self.names, strict=True)
        )
        where = "" if self.condition is None else f", where=[{self.condition}]"
        return f"Calc(select=[{', '.join(parts)}]{where})"


@dataclass(frozen=True)
class WatermarkAssigner(ChangeKeeping):
    """Event time of rows: a column, and an expression over the row for the watermark that it brings."""

    type: RowType
    """The columns of the input; the rowtime column is a time attribute."""
    rowtime: int
    watermark: Expression
    params: WatermarkParams = field(default_factory=WatermarkParams)

    @property
    def row_type(self) -> RowType:
        return self.type

    def describe(self) -> str:
        return f"WatermarkAssigner(rowtime=[{self.type.field_names[self.rowtime]}], watermark=[{self.watermark}])"


@dataclass(frozen=True)
class SinkAbilities:
    """How the sink of an INSERT came from that of its table."""

    options: tuple[tuple[str, str], ...] = ()
    """Options of a hint."""
    overwrite: bool = False
    partition: tuple[tuple[str, str], ...] = ()
    """The static partition."""


@dataclass(frozen=True)
class Sink(SingleInput):
    """Rows that are written to a table."""

    identifier: ObjectIdentifier | None
    """The table; None if the rows go to a program or to a client."""
    sink: DynamicTableSink
    primary_key: tuple[int, ...] = ()
    on_conflict: str | None = None
    """What becomes of rows with the same primary key but other keys: ERROR, NOTHING or DEDUPLICATE."""
    abilities: SinkAbilities = field(default=SinkAbilities(), compare=False)
    place: Position | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the text names the table."""

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        produced = inputs[0]
        accepted = self.sink.get_changelog_mode(produced)
        refused = produced.kinds - accepted.kinds - {RowKind.UPDATE_BEFORE}
        if refused:
            changes = {RowKind.UPDATE_AFTER: "update", RowKind.DELETE: "delete", RowKind.INSERT: "insert"}
            kinds = " and ".join(change for kind, change in changes.items() if kind in refused)
            name = "" if self.identifier is None else f" '{self.identifier.as_summary_string()}'"
            raise ValidationError(
                f"Table sink{name} doesn't support consuming {kinds} changes which is produced by node "
                f"{self.input.describe()}",
                position=self.place,
                hint="Write to a connector that accepts changes, such as upsert-kafka or jdbc with a PRIMARY KEY.",
            )
        return accepted

    @property
    def accepts_update_before(self) -> bool:
        """Whether the sink needs rows of this kind of a query with updates."""
        return RowKind.UPDATE_BEFORE in self.sink.get_changelog_mode(ChangelogMode.all()).kinds

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return False, (self.accepts_update_before,)

    def describe(self) -> str:
        table = self.sink.as_summary_string() if self.identifier is None else self.identifier.as_summary_string()
        conflict = "" if self.on_conflict is None else f", conflictStrategy=[{self.on_conflict}]"
        return f"Sink(table=[{table}], fields=[{', '.join(self.row_type.field_names)}]{conflict})"


def inputs_of(expressions: Sequence[Expression]) -> list[int]:
    """The columns to which expressions refer, ascending."""
    return sorted({part.index for one in expressions for part in walk(one) if isinstance(part, InputRef)})


@dataclass(frozen=True)
class FinalRows(SingleInput):
    """The rows that are left of a changelog when its input has ended, perhaps sorted and without the first ones."""

    order: tuple[SortKey, ...] = ()
    offset: int = 0

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return ChangelogMode.insert_only()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return False, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return inputs[0]

    def describe(self) -> str:
        names = self.row_type.field_names
        parts = [f"select=[{', '.join(names)}]"]
        parts += [f"orderBy=[{', '.join(key.describe(names) for key in self.order)}]"] if self.order else []
        parts += [f"offset=[{self.offset}]"] if self.offset else []
        return f"FinalRows({', '.join(parts)})"


@dataclass(frozen=True)
class NamedQuery(ChangeKeeping):
    """The rows of a query with a UID hint. Rules do not move anything across it."""

    uid: str

    def describe(self) -> str:
        return f"NamedQuery(uid=[{self.uid}])"


def uid_below(node: LogicalNode) -> str | None:
    """The name of the query whose rows a sink gets."""
    while not isinstance(node, NamedQuery):
        if not isinstance(node, SingleInput):
            return None
        node = node.input
    return node.uid
