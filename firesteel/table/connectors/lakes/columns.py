"""Columns that SQL declares, and those that a table in a lake has."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.connectors.lakes.table import LakeTable
from firesteel.table.bound.errors import ValidationError
from firesteel.types.logical import LogicalType, RowType

__all__ = ["check_source_columns"]


def check_source_columns(declared: RowType, table: LakeTable, fits: Callable[[LogicalType, LogicalType], bool]) -> None:
    """Raises ValidationError unless the table has the columns that SQL declares."""
    there = {part.name: part.type for part in table.row_type().fields}
    problems = [
        f"{part.name} {part.type}: "
        + (f"is {there[part.name]} in the table" if part.name in there else "not in the table")
        for part in declared.fields
        if part.name not in there or not fits(there[part.name], part.type)
    ]
    if problems:
        raise ValidationError(
            f"The columns do not fit those of {table.describe()}:\n" + "\n".join(f"  {line}" for line in problems),
            hint=f"Its columns: {', '.join(f'{name} {type_}' for name, type_ in there.items())}.",
        )
