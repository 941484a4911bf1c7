"""TableSchema: names and types of columns, as older programs declare them."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.table.schema import Schema, UnresolvedPhysicalColumn
from firesteel.types.logical import LogicalType, RowType

__all__ = ["TableSchema"]


class TableSchema:
    """Names and types of columns. `Schema` takes its place, as in Flink."""

    def __init__(self, field_names: Iterable[str] = (), data_types: Iterable[LogicalType] = ()) -> None:
        self._fields = tuple(zip(field_names, data_types, strict=True))

    @classmethod
    def builder(cls) -> Builder:
        """A builder of a schema."""
        return Builder()

    def copy(self) -> TableSchema:
        """The same; it does not change."""
        return self

    def get_field_data_types(self) -> list[LogicalType]:
        """The types."""
        return [data_type for _, data_type in self._fields]

    def get_field_data_type(self, field: int | str) -> LogicalType | None:
        """The type of a column by index or name; None if there is none."""
        if isinstance(field, int):
            return self._fields[field][1] if 0 <= field < len(self._fields) else None
        return dict(self._fields).get(field)

    def get_field_count(self) -> int:
        """The number of columns."""
        return len(self._fields)

    def get_field_names(self) -> list[str]:
        """The names."""
        return [name for name, _ in self._fields]

    def get_field_name(self, field_index: int) -> str | None:
        """The name of a column; None if there is none."""
        return self._fields[field_index][0] if 0 <= field_index < len(self._fields) else None

    def to_row_data_type(self) -> RowType:
        """The row of all columns."""
        return RowType.of(self.get_field_names(), self.get_field_data_types())

    def to_schema(self) -> Schema:
        """The same as a `Schema`."""
        return Schema(tuple(UnresolvedPhysicalColumn(name, data_type) for name, data_type in self._fields))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    def __str__(self) -> str:
        lines = (f" |-- {name}: {data_type.as_summary_string()}\n" for name, data_type in self._fields)
        return "root\n" + "".join(lines)

    def __repr__(self) -> str:
        return str(self)


class Builder:
    """Builds a TableSchema, column by column."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._types: list[LogicalType] = []

    def field(self, name: str, data_type: LogicalType) -> Builder:
        """Adds a column."""
        self._names.append(name)
        self._types.append(data_type)
        return self

    def build(self) -> TableSchema:
        """The schema."""
        return TableSchema(self._names, self._types)


TableSchema.Builder = Builder  # type: ignore[attr-defined]
