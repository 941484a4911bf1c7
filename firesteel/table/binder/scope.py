"""The columns that an expression can name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, FieldAccess, InputRef, Literal
from firesteel.types.logical import FieldsType, LogicalType

__all__ = ["Scope", "ScopeColumn", "field_of", "item_of"]


@dataclass(frozen=True)
class ScopeColumn:
    """A column, with the name or alias of its table."""

    name: str
    type: LogicalType
    table: str | None = None


class Scope:
    """The columns of an input, in order. Names are case-sensitive."""

    def __init__(self, columns: Iterable[ScopeColumn]) -> None:
        self.columns = tuple(columns)

    @staticmethod
    def of(type_: FieldsType, table: str | None = None) -> Scope:
        """The columns of one table."""
        return Scope(ScopeColumn(part.name, part.type, table) for part in type_.fields)

    def resolve(self, path: Sequence[str]) -> Expression:
        """The column of a name ``column``, ``table.column`` or ``column.field``, in this order."""
        found = self._columns(path[0], None)
        if len(path) > 1 and any(column.table == path[0] for column in self.columns):
            qualified = self._columns(path[1], path[0])
            if qualified or not found:
                return self._fields(self._only(qualified, path[:2], path[0]), path[2:])
        if len(path) > 1 and not found:
            raise self._unknown_table(path[0])
        return self._fields(self._only(found, path[:1], None), path[1:])

    def _columns(self, name: str, table: str | None) -> list[int]:
        return [
            index for index, column in enumerate(self.columns) if column.name == name and table in (None, column.table)
        ]

    def _only(self, found: list[int], path: Sequence[str], table: str | None) -> Expression:
        name = ".".join(path)
        if len(found) > 1:
            raise ValidationError(f"Column '{name}' is ambiguous.", hint="Put the name of its table before it.")
        if not found:
            raise self._unknown(path, table)
        column = self.columns[found[0]]
        return InputRef(column.type, found[0], column.name)

    def _unknown(self, path: Sequence[str], table: str | None) -> ValidationError:
        names = [column.name for column in self.columns if table in (None, column.table)]
        tables = sorted({column.table for column in self.columns if column.table})
        near = get_close_matches(path[-1], names, n=1, cutoff=0.5) or [
            name for name in names if name.lower() == path[-1].lower()
        ]
        if table is None and path[-1] in tables:
            return ValidationError(f"'{path[-1]}' is a table, not a column.")
        where = f" in table '{table}'" if table else ""
        hint = f"Did you mean '{near[0]}'?" if near else f"The columns are {', '.join(names)}." if names else None
        return ValidationError(f"Column '{path[-1]}' not found{where}.", hint=hint)

    def _unknown_table(self, name: str) -> ValidationError:
        tables = list(dict.fromkeys(column.table for column in self.columns if column.table))
        near = get_close_matches(name, tables, n=1, cutoff=0.5)
        hint = f"Did you mean '{near[0]}'?" if near else f"The tables are {', '.join(tables)}." if tables else None
        return ValidationError(f"Table '{name}' not found.", hint=hint)

    def _fields(self, operand: Expression, names: Sequence[str]) -> Expression:
        for name in names:
            operand = field_of(operand, name)
        return operand


def field_of(operand: Expression, name: str) -> Expression:
    """A field of a row by its name."""
    type_ = operand.type
    if not isinstance(type_, FieldsType):
        raise ValidationError(f"'{operand}' of type {type_.as_summary_string()} has no fields.")
    if name not in type_.field_names:
        near = get_close_matches(name, type_.field_names, n=1, cutoff=0.5)
        hint = f"Did you mean '{near[0]}'?" if near else f"The fields are {', '.join(type_.field_names)}."
        raise ValidationError(f"Field '{name}' not found in '{operand}'.", hint=hint)
    index = type_.field_names.index(name)
    part = type_.fields[index].type
    return FieldAccess(part.copy(part.nullable or type_.nullable), operand, index)


def item_of(operand: Expression, key: Expression) -> Expression:
    """A field of a row by its name or number in brackets; the first one has the number 1."""
    type_ = operand.type
    assert isinstance(type_, FieldsType)
    if not isinstance(key, Literal) or not isinstance(key.value, (str, int)):
        raise ValidationError("A field of a row needs a literal in brackets.", hint="Write its name or its number.")
    if isinstance(key.value, str):
        return field_of(operand, key.value)
    if not 1 <= key.value <= len(type_.fields):
        raise ValidationError(f"'{operand}' has no field {key.value}; it has {len(type_.fields)} fields.")
    return field_of(operand, type_.field_names[key.value - 1])
