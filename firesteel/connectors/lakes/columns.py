"""Rows as Arrow columns: what a program writes, in the types of the table's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import RecordSerializationError
from firesteel.connectors.lakes.errors import SchemaMismatchError, nearest
from firesteel.connectors.lakes.table import LakeTable
from firesteel.types.arrow import require_pyarrow
from firesteel.types.logical import RowType

__all__ = ["ColumnRows", "select_columns", "to_schema"]


class ColumnRows(Sequence[Any]):
    """Rows of a RecordBatch, as one value of a stream: with row kinds (Flink's numbers), None if all are insertions."""

    __slots__ = ("data", "kinds")

    def __init__(self, data: Any, kinds: Any = None) -> None:
        self.data = data
        self.kinds = kinds

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __getitem__(self, index: Any) -> Any:
        start, stop, _ = index.indices(len(self))
        kinds = None if self.kinds is None else self.kinds[start:stop]
        return ColumnRows(self.data.slice(start, max(stop - start, 0)), kinds)


def to_schema(data: Any, schema: Any) -> Any:
    """A RecordBatch or Table with the columns of a schema, found by name; those it lacks are null.

    Values that do not fit fail here, before a checkpoint has them.
    """
    pa = require_pyarrow("Lakes")
    names = data.schema.names
    arrays = []
    for field in schema:
        if field.name in names:
            column = data.column(names.index(field.name))
            column = column if column.type == field.type else column.cast(field.type)
        else:
            column = pa.nulls(data.num_rows, field.type)
        if not field.nullable and column.null_count:
            raise RecordSerializationError(
                f"The column '{field.name}' of the table is required, but {column.null_count} of {data.num_rows} rows "
                "have no value for it.",
                record="",
                hint="Give it a value, or make the column of the table optional.",
            )
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=schema)


def select_columns(table: LakeTable, names: Sequence[str] | None) -> RowType:
    """The columns of a table with these names, all without names; those it does not have are an error."""
    there = table.row_type()
    table.close()
    if names is None:
        return there
    missing = [name for name in names if name not in there.field_names]
    if missing:
        raise SchemaMismatchError(
            f"{table.describe()} has no column {', '.join(map(repr, missing))}.",
            columns=missing,
            hint=nearest(missing[0], there.field_names) or f"Its columns are: {', '.join(there.field_names)}.",
        )
    return RowType([there.fields[there.field_names.index(name)] for name in names], nullable=False)
