"""Columns whose types and expressions are resolved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from firesteel.table.names import quoted, string_literal
from firesteel.table.schema import (
    UnresolvedColumn,
    UnresolvedComputedColumn,
    UnresolvedMetadataColumn,
    UnresolvedPhysicalColumn,
    metadata_clause,
)
from firesteel.types.logical import LogicalType

__all__ = ["Column", "ComputedColumn", "MetadataColumn", "PhysicalColumn"]


@dataclass(frozen=True)
class Column(ABC):
    """A column of a `ResolvedSchema`: physical, computed, or metadata."""

    name: str
    data_type: LogicalType

    @staticmethod
    def physical(name: str, data_type: LogicalType) -> PhysicalColumn:
        """A column that a connector reads and writes."""
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, resolved_expression: Any) -> ComputedColumn:
        """A column that is computed from others."""
        return ComputedColumn(name, resolved_expression.get_output_data_type(), resolved_expression)

    @staticmethod
    def metadata(name: str, data_type: LogicalType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """A column with metadata of a connector."""
        return MetadataColumn(name, data_type, metadata_key, is_virtual)

    @property
    @abstractmethod
    def comment(self) -> str | None:
        """The comment, if it has one."""

    @abstractmethod
    def with_comment(self, comment: str | None) -> Column:
        """The same column with a comment."""

    @abstractmethod
    def is_physical(self) -> bool:
        """Whether the connector has it as a field."""

    @abstractmethod
    def is_persisted(self) -> bool:
        """Whether sinks write it."""

    @abstractmethod
    def explain_extras(self) -> str | None:
        """What follows the type in DDL; None if nothing does."""

    @abstractmethod
    def to_unresolved(self) -> UnresolvedColumn:
        """The declaration of this column."""

    def get_data_type(self) -> LogicalType:
        """The type."""
        return self.data_type

    def get_name(self) -> str:
        """The name."""
        return self.name

    def get_comment(self) -> str | None:
        """The comment, if it has one."""
        return self.comment

    def as_summary_string(self) -> str:
        """Name, type and the rest, as DDL has them."""
        extras = self.explain_extras()
        text = f"{quoted(self.name)} {self.data_type.as_summary_string()}" + (f" {extras}" if extras else "")
        return text + (f" COMMENT {string_literal(self.comment)}" if self.comment else "")

    def copy(self, new_data_type: LogicalType) -> Column:
        """The same column with another type."""
        return replace(self, data_type=new_data_type)

    def rename(self, new_name: str) -> Column:
        """The same column with another name."""
        return replace(self, name=new_name)

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A column that a connector reads and writes."""

    comment: str | None = None

    def with_comment(self, comment: str | None) -> PhysicalColumn:
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        return True

    def is_persisted(self) -> bool:
        return True

    def explain_extras(self) -> str | None:
        return None

    def to_unresolved(self) -> UnresolvedColumn:
        return UnresolvedPhysicalColumn(self.name, self.data_type, self.comment)


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column that is computed from others."""

    expression: Any
    comment: str | None = None

    def get_expression(self) -> Any:
        """The expression."""
        return self.expression

    def with_comment(self, comment: str | None) -> ComputedColumn:
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        return False

    def is_persisted(self) -> bool:
        return False

    def explain_extras(self) -> str | None:
        return f"AS {self.expression.as_summary_string()}"

    def to_unresolved(self) -> UnresolvedColumn:
        return UnresolvedComputedColumn(self.name, self.expression, self.comment)


@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column with metadata of a connector."""

    metadata_key: str | None = None
    virtual: bool = False
    comment: str | None = None

    def is_virtual(self) -> bool:
        """Whether it is read and not written."""
        return self.virtual

    def get_metadata_key(self) -> str | None:
        """The connector's name for it, if it differs from the column's."""
        return self.metadata_key

    def with_comment(self, comment: str | None) -> MetadataColumn:
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        return False

    def is_persisted(self) -> bool:
        return not self.virtual

    def explain_extras(self) -> str | None:
        return metadata_clause(self.metadata_key, self.virtual)

    def to_unresolved(self) -> UnresolvedColumn:
        return UnresolvedMetadataColumn(self.name, self.data_type, self.metadata_key, self.virtual, self.comment)
