"""ResolvedSchema: columns, watermark and primary key of a table, with types and expressions resolved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from firesteel.table.catalog.columns import Column, PhysicalColumn
from firesteel.table.names import quoted
from firesteel.table.schema import Schema, UnresolvedPrimaryKey, UnresolvedWatermark
from firesteel.types.logical import LogicalType, RowField, RowType

__all__ = ["Constraint", "ResolvedSchema", "UniqueConstraint", "WatermarkSpec"]


@dataclass(frozen=True)
class WatermarkSpec:
    """The row time of a table, and the expression of its watermark."""

    rowtime_attribute: str
    watermark_expression: Any

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: Any) -> WatermarkSpec:
        """A column and an expression."""
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        """The column."""
        return self.rowtime_attribute

    def get_watermark_expression(self) -> Any:
        """The expression."""
        return self.watermark_expression

    def as_summary_string(self) -> str:
        """The clause as DDL has it."""
        expression = self.watermark_expression
        kind = expression.get_output_data_type().as_summary_string()
        return f"WATERMARK FOR {quoted(self.rowtime_attribute)}: {kind} AS {expression.as_summary_string()}"

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class Constraint(ABC):
    """What holds for the rows of a table. Its owner ensures it: constraints are not enforced."""

    class ConstraintType(Enum):
        """The kinds of constraints."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    name: str

    def get_name(self) -> str:
        """The name of the constraint."""
        return self.name

    def is_enforced(self) -> bool:
        """False: no constraint is enforced."""
        return False

    @abstractmethod
    def get_type(self) -> Constraint.ConstraintType:
        """The kind."""

    @abstractmethod
    def as_summary_string(self) -> str:
        """The clause as DDL has it."""

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """A primary key."""

    columns: tuple[str, ...]

    @staticmethod
    def primary_key(name: str, columns: Iterable[str]) -> UniqueConstraint:
        """A primary key of these columns."""
        return UniqueConstraint(name, tuple(columns))

    def get_columns(self) -> list[str]:
        """The names of its columns."""
        return list(self.columns)

    def get_type(self) -> Constraint.ConstraintType:
        return Constraint.ConstraintType.PRIMARY_KEY

    def get_type_string(self) -> str:
        """``PRIMARY KEY``."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        columns = ", ".join(map(quoted, self.columns))
        return f"CONSTRAINT {quoted(self.name)} PRIMARY KEY ({columns}) NOT ENFORCED"


@dataclass(frozen=True, init=False)
class ResolvedSchema:
    """Columns with their types, watermarks, and the primary key. Types show which columns are time attributes."""

    columns: tuple[Column, ...]
    watermark_specs: tuple[WatermarkSpec, ...]
    primary_key: UniqueConstraint | None

    def __init__(
        self,
        columns: Iterable[Column],
        watermark_specs: Iterable[WatermarkSpec] = (),
        primary_key: UniqueConstraint | None = None,
    ) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "watermark_specs", tuple(watermark_specs))
        object.__setattr__(self, "primary_key", primary_key)
        twice = [name for name, count in Counter(column.name for column in self.columns).items() if count > 1]
        if twice:
            raise ValueError(f"Schema must not contain duplicate column names. Found duplicates: {twice}")

    @staticmethod
    def of(columns: Iterable[Column]) -> ResolvedSchema:
        """A schema of columns alone."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[LogicalType]) -> ResolvedSchema:
        """A schema of physical columns alone."""
        return ResolvedSchema(
            PhysicalColumn(name, data_type) for name, data_type in zip(column_names, column_data_types, strict=True)
        )

    def get_column_count(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def get_columns(self) -> list[Column]:
        """All columns."""
        return list(self.columns)

    def get_column_names(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self.columns]

    def get_column_data_types(self) -> list[LogicalType]:
        """The types of all columns."""
        return [column.data_type for column in self.columns]

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """A column by index or name; None if there is none."""
        if isinstance(column_index_or_name, int):
            return self.columns[column_index_or_name] if 0 <= column_index_or_name < len(self.columns) else None
        return next((column for column in self.columns if column.name == column_index_or_name), None)

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """The watermarks; at most one."""
        return list(self.watermark_specs)

    def get_primary_key(self) -> UniqueConstraint | None:
        """The primary key, if there is one."""
        return self.primary_key

    def get_primary_key_indexes(self) -> list[int]:
        """The indexes of the columns of the primary key."""
        names = self.get_column_names()
        return [names.index(name) for name in self.primary_key.columns] if self.primary_key else []

    def to_source_row_data_type(self) -> RowType:
        """The row that a query reads: all columns."""
        return _row(self.columns)

    def to_physical_row_data_type(self) -> RowType:
        """The row of the physical columns."""
        return _row(column for column in self.columns if column.is_physical())

    def to_sink_row_data_type(self) -> RowType:
        """The row that a query writes: physical columns, and metadata that is not virtual."""
        return _row(column for column in self.columns if column.is_persisted())

    def to_schema(self) -> Schema:
        """The schema as it would be declared."""
        key = self.primary_key
        return Schema(
            tuple(column.to_unresolved() for column in self.columns),
            tuple(
                UnresolvedWatermark(spec.rowtime_attribute, spec.watermark_expression) for spec in self.watermark_specs
            ),
            UnresolvedPrimaryKey(key.name, key.columns) if key else None,
        )

    def __str__(self) -> str:
        parts = [*self.columns, *self.watermark_specs, *([self.primary_key] if self.primary_key else [])]
        return "(\n" + ",\n".join(f"  {part}" for part in parts) + "\n)"


def _row(columns: Iterable[Column]) -> RowType:
    return RowType([RowField(column.name, column.data_type) for column in columns], nullable=False)
