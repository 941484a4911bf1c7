"""Schema: the columns, watermark and primary key of a table as they were declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from firesteel.table.names import quoted, string_literal
from firesteel.types.logical import LogicalType, RowType

__all__ = [
    "Schema",
    "UnresolvedColumn",
    "UnresolvedComputedColumn",
    "UnresolvedMetadataColumn",
    "UnresolvedPhysicalColumn",
    "UnresolvedPrimaryKey",
    "UnresolvedWatermark",
]


def _text(declared: Any) -> str:
    """A type or an expression; one that is still SQL text, in brackets."""
    if isinstance(declared, str):
        return f"[{declared}]"
    return declared.as_summary_string() if isinstance(declared, LogicalType) else str(declared)


@dataclass(frozen=True)
class UnresolvedColumn:
    """A column as it was declared."""

    name: str

    @property
    def declaration(self) -> str:
        """What follows the column's name."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{quoted(self.name)} {self.declaration}"


@dataclass(frozen=True)
class UnresolvedPhysicalColumn(UnresolvedColumn):
    """A column that a connector reads and writes. ``data_type`` is SQL text until it is resolved."""

    data_type: LogicalType | str
    comment: str | None = None

    @property
    def declaration(self) -> str:
        """The type."""
        return _text(self.data_type) + _comment(self.comment)


@dataclass(frozen=True)
class UnresolvedComputedColumn(UnresolvedColumn):
    """A column that is computed from others."""

    expression: Any
    comment: str | None = None

    @property
    def declaration(self) -> str:
        """The expression."""
        return f"AS {_text(self.expression)}" + _comment(self.comment)


@dataclass(frozen=True)
class UnresolvedMetadataColumn(UnresolvedColumn):
    """A column with metadata of a connector, such as the timestamp of a Kafka record."""

    data_type: LogicalType | str
    metadata_key: str | None = None
    is_virtual: bool = False
    comment: str | None = None

    @property
    def declaration(self) -> str:
        """Type and key."""
        return f"{_text(self.data_type)} {metadata_clause(self.metadata_key, self.is_virtual)}" + _comment(self.comment)


@dataclass(frozen=True)
class UnresolvedWatermark:
    """The row time of a table, and the expression of its watermark."""

    column_name: str
    expression: Any

    def __str__(self) -> str:
        return f"WATERMARK FOR {quoted(self.column_name)} AS {_text(self.expression)}"


@dataclass(frozen=True)
class UnresolvedPrimaryKey:
    """The columns of a primary key, with the name of the constraint."""

    constraint_name: str
    column_names: tuple[str, ...]

    def __str__(self) -> str:
        columns = ", ".join(map(quoted, self.column_names))
        return f"CONSTRAINT {quoted(self.constraint_name)} PRIMARY KEY ({columns}) NOT ENFORCED"


def metadata_clause(key: str | None, is_virtual: bool) -> str:
    """``METADATA FROM 'key' VIRTUAL`` as DDL has it."""
    return "METADATA" + (f" FROM {string_literal(key)}" if key else "") + (" VIRTUAL" if is_virtual else "")


def _comment(comment: str | None) -> str:
    return f" COMMENT {string_literal(comment)}" if comment else ""


@dataclass(frozen=True)
class Schema:
    """What a table is declared to have: columns, watermarks, and a primary key.

    >>> print(Schema.new_builder().column("id", "BIGINT NOT NULL").primary_key("id").build())
    (
      `id` [BIGINT NOT NULL],
      CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED
    )
    """

    columns: tuple[UnresolvedColumn, ...] = ()
    watermarks: tuple[UnresolvedWatermark, ...] = ()
    key: UnresolvedPrimaryKey | None = None

    @staticmethod
    def new_builder() -> Builder:
        """A builder of a schema."""
        return Builder()

    def __str__(self) -> str:
        parts = [*self.columns, *self.watermarks, *([self.key] if self.key else [])]
        return "(\n" + ",\n".join(f"  {part}" for part in parts) + "\n)"


class Resolved(Protocol):
    """A resolved schema."""

    def to_schema(self) -> Schema:
        """The schema as it would be declared."""


class Builder:
    """Builds a schema, column by column."""

    def __init__(self) -> None:
        self._columns: list[UnresolvedColumn] = []
        self._watermarks: list[UnresolvedWatermark] = []
        self._key: UnresolvedPrimaryKey | None = None

    def from_schema(self, unresolved_schema: Schema) -> Builder:
        """Adds all of another schema."""
        self._columns += unresolved_schema.columns
        self._watermarks += unresolved_schema.watermarks
        if unresolved_schema.key is not None:
            self.primary_key_named(unresolved_schema.key.constraint_name, *unresolved_schema.key.column_names)
        return self

    def from_resolved_schema(self, resolved_schema: Resolved) -> Builder:
        """Adds all of a resolved schema."""
        return self.from_schema(resolved_schema.to_schema())

    def from_row_data_type(self, data_type: LogicalType) -> Builder:
        """Adds a column for each field of a row."""
        if not isinstance(data_type, RowType):
            raise TypeError(f"Data type of ROW expected, got {data_type}.")
        return self.from_fields([field.name for field in data_type.fields], [field.type for field in data_type.fields])

    def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[LogicalType | str]) -> Builder:
        """Adds columns by names and types."""
        if len(field_names) != len(field_data_types):
            raise ValueError("Field names and field data types must have the same length.")
        for name, data_type in zip(field_names, field_data_types, strict=True):
            self.column(name, data_type)
        return self

    def column(self, column_name: str, data_type: LogicalType | str) -> Builder:
        """Adds a physical column."""
        return self._add(UnresolvedPhysicalColumn(column_name, data_type))

    def column_by_expression(self, column_name: str, expr: Any) -> Builder:
        """Adds a computed column; the expression is SQL text or an Expression."""
        return self._add(UnresolvedComputedColumn(column_name, expr))

    def column_by_metadata(
        self,
        column_name: str,
        data_type: LogicalType | str,
        metadata_key: str | None = None,
        is_virtual: bool = False,
    ) -> Builder:
        """Adds a metadata column. A virtual one is read and not written."""
        return self._add(UnresolvedMetadataColumn(column_name, data_type, metadata_key, is_virtual))

    def with_comment(self, comment: str | None) -> Builder:
        """Sets the comment of the column added last."""
        if not self._columns:
            raise ValueError("A comment needs a column: add the column first.")
        self._columns[-1] = replace(self._columns[-1], comment=comment)  # type: ignore[call-arg]
        return self

    def watermark(self, column_name: str, watermark_expr: Any) -> Builder:
        """Declares the row time, and the expression of its watermark."""
        self._watermarks.append(UnresolvedWatermark(column_name, watermark_expr))
        return self

    def primary_key(self, *column_names: str) -> Builder:
        """Declares the primary key."""
        return self.primary_key_named("PK_" + "_".join(column_names), *column_names)

    def primary_key_named(self, constraint_name: str, *column_names: str) -> Builder:
        """Declares the primary key, with a name for the constraint."""
        if self._key is not None:
            raise ValueError("Multiple primary keys are not supported.")
        if not column_names:
            raise ValueError("Primary key constraint must be defined for at least a single column.")
        self._key = UnresolvedPrimaryKey(constraint_name, column_names)
        return self

    def build(self) -> Schema:
        """The schema."""
        return Schema(tuple(self._columns), tuple(self._watermarks), self._key)

    def _add(self, column: UnresolvedColumn) -> Builder:
        self._columns.append(column)
        return self


Schema.Builder = Builder  # type: ignore[attr-defined]
