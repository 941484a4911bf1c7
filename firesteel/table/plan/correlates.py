"""Rows beside the elements of a collection that they hold, and beside what a model returns for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.model import BoundModel
from firesteel.table.plan.nodes import SingleInput, unique_names
from firesteel.types.logical import (
    ArrayType,
    FieldsType,
    IntType,
    LogicalType,
    MapType,
    MultisetType,
    RowField,
    RowType,
)

__all__ = ["MLPredict", "PredictOptions", "Unnest", "element_columns"]


def element_columns(type_: LogicalType, with_ordinality: bool) -> RowType | None:
    """The columns of the elements of a collection; None if the type is none."""
    fields: list[RowField]
    match type_:
        case ArrayType() | MultisetType():
            element = type_.element_type
            fields = [RowField("f0", element)]
            if isinstance(element, FieldsType):
                fields = [
                    RowField(part.name, part.type.copy(part.type.nullable or element.nullable))
                    for part in element.fields
                ]
        case MapType():
            fields = [RowField("f0", type_.key_type), RowField("f1", type_.value_type)]
        case _:
            return None
    if with_ordinality:
        fields.append(RowField("ORDINALITY", IntType(nullable=False)))
    return RowType(fields, nullable=False)


@dataclass(frozen=True)
class Unnest(SingleInput):
    """Each row once for each element of a collection, with the columns of the element after its own."""

    collection: Expression
    elements: RowType
    """The columns of an element; the last one is its number if there is ordinality."""
    with_ordinality: bool = False
    keeps_rows: bool = False
    """Whether a row without elements is kept, with nulls."""
    condition: Expression | None = None
    """What holds for a row and its element."""

    @cached_property
    def _type(self) -> RowType:
        added = [
            RowField(part.name, part.type.copy(part.type.nullable or self.keeps_rows)) for part in self.elements.fields
        ]
        fields = [*self.input.row_type.fields, *added]
        names = unique_names(part.name for part in fields)
        return RowType.of(names, [part.type for part in fields], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        # an update may have other elements than the row before
        return True, (True,)

    def describe(self) -> str:
        kind = "LEFT" if self.keeps_rows else "INNER"
        where = "" if self.condition is None else f", where=[{self.condition}]"
        if isinstance(self.collection, Call) and self.collection.definition is not None:
            return f"Correlate(joinType=[{kind}], invocation=[{self.collection}]{where})"
        ordinality = " WITH ORDINALITY" if self.with_ordinality else ""
        return f"Correlate(joinType=[{kind}], invocation=[UNNEST({self.collection}){ordinality}]{where})"


@dataclass(frozen=True)
class PredictOptions:
    """How a model is called, from the argument ``CONFIG``; None for the option of the session."""

    is_async: bool | None = None
    is_ordered: bool | None = None
    max_concurrent: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True)
class MLPredict(SingleInput):
    """ML_PREDICT: each row once for each row that a model returns for it, whose columns are after its own."""

    model: BoundModel
    columns: tuple[int, ...]
    """The columns of the input that the model takes."""
    options: PredictOptions = PredictOptions()

    @cached_property
    def _type(self) -> RowType:
        fields = [*self.input.row_type.fields, *self.model.output_type.fields]
        names = unique_names(part.name for part in fields)
        return RowType.of(names, [part.type for part in fields], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        # a model may return no row for an update, or several
        return True, (True,)

    def describe(self) -> str:
        names = self.input.row_type.field_names
        columns = ", ".join(names[column] for column in self.columns)
        return (
            f"MLPredictTableFunction(invocation=[ML_PREDICT(MODEL {self.model.identifier.as_summary_string()}, "
            f"DESCRIPTOR({columns}))], select=[{', '.join(self.row_type.field_names)}])"
        )


@dataclass(frozen=True)
class ProcessTable(SingleInput):
    """The partition columns of rows, what a function makes of them, and the time of what it makes."""

    definition: Any
    partition: tuple[int, ...] | None
    """None for a table with row semantics."""
    scalars: tuple[tuple[str, Expression], ...]
    time: int | None
    """The column of ``on_time``."""
    place: Position | None = field(default=None, compare=False)

    @cached_property
    def _type(self) -> RowType:
        inputs = self.input.row_type.fields
        fields = [inputs[index] for index in self.partition or ()]
        fields += self.definition.columns.fields
        if self.time is not None:
            fields.append(RowField("rowtime", inputs[self.time].type))
        names = unique_names(part.name for part in fields)
        return RowType.of(names, [part.type for part in fields], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if not inputs[0].is_insert_only:
            raise ValidationError(
                f"The table argument of '{self.definition.name}' doesn't support consuming update and delete changes.",
                position=self.place,
            )
        return ChangelogMode.insert_only()

    def describe(self) -> str:
        names = self.input.row_type.field_names
        by = "" if self.partition is None else f", partition=[{', '.join(names[index] for index in self.partition)}]"
        on = "" if self.time is None else f", on_time=[{names[self.time]}]"
        scalars = "".join(f", {name}=[{value}]" for name, value in self.scalars)
        return f"ProcessTableFunction(function=[{self.definition.name}]{by}{on}{scalars})"
