"""A table whose changes are captured: its columns, and the order in which its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

__all__ = ["CapturedColumn", "CapturedTable", "Key", "KeyColumn", "KeyOrder", "quote"]

Key: TypeAlias = "tuple[Any, ...]"
"""The values of a primary key, as they are given to the server."""


def quote(name: str) -> str:
    """A name as an SQL identifier, in a statement with parameters.

    >>> quote("Orders"), quote("100%")
    ('"Orders"', '"100%%"')
    """
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


@dataclass(frozen=True)
class CapturedColumn:
    """A column; the type is the one below a domain."""

    name: str
    declared_oid: int
    """The type as the log has it: that of a domain, if the column has one."""
    type_oid: int
    type_name: str


class KeyOrder:
    """How a key column is put in order, so that the server and Python agree on it."""

    NATIVE = "native"
    """The type's own order, which Python's values have too."""
    NUMERIC = "numeric"
    """The same, but NaN is the largest number."""
    TEXT = "text"
    """By code points: the column's collation or encoding is another one, so its index is of no use."""
    PADDED = "padded"
    """As TEXT; blanks at the end do not count."""
    AS_TEXT = "as text"
    """By the code points of the value's text: for types of which Python has no values, or not their order."""


@dataclass(frozen=True)
class KeyColumn:
    """A column of the primary key."""

    name: str
    index: int
    """Its place in the table's columns."""
    type_name: str
    order: str
    is_utf8: bool = True
    """Whether the bytes of a text are in the order of its code points in this database."""

    @property
    def expression(self) -> str:
        """What the server compares."""
        name = quote(self.name)
        return name if self.uses_index else self._by_code_points(name)

    @property
    def parameter(self) -> str:
        """The place of a value in a statement."""
        return f"%s::{self.type_name}" if self.uses_index else self._by_code_points("%s")

    def _by_code_points(self, value: str) -> str:
        return f'({value}::text COLLATE "C")' if self.is_utf8 else f"convert_to({value}::text, 'UTF8')"

    @property
    def uses_index(self) -> bool:
        """Whether the primary key's index has this order."""
        return self.order in (KeyOrder.NATIVE, KeyOrder.NUMERIC)


@dataclass(frozen=True)
class CapturedTable:
    """A table as it was when the capture began."""

    database: str
    schema: str
    name: str
    columns: tuple[CapturedColumn, ...]
    key: tuple[KeyColumn, ...]
    """Empty for a table without primary key."""
    is_partitioned: bool = False
    oid: int = 0
    """The table's id, which it keeps under another name; 0 in checkpoints of earlier versions."""

    @property
    def table_id(self) -> str:
        """``schema.table``."""
        return f"{self.schema}.{self.name}"

    def sql_name(self, schema: str, name: str) -> str:
        """The table in a FROM clause, by the name it has now.

        Tables that inherit from it are tables of their own in the log.
        """
        quoted = f"{quote(schema)}.{quote(name)}"
        return quoted if self.is_partitioned else f"ONLY {quoted}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def uses_index(self) -> bool:
        """Whether ranges of keys can be read through the primary key's index."""
        return all(column.uses_index for column in self.key)

    @property
    def key_expressions(self) -> str:
        """The key as the server compares it."""
        return ", ".join(column.expression for column in self.key)

    @property
    def key_selection(self) -> list[str]:
        """What is to be selected beside the columns, to have the key of a row."""
        return [f"{quote(column.name)}::text" for column in self.key if column.order == KeyOrder.AS_TEXT]

    def range_condition(self, low: Key | None, high: Key | None) -> tuple[str, list[Any]]:
        """The condition for rows behind ``low`` and up to ``high``, and its parameters."""
        parameters = ", ".join(column.parameter for column in self.key)
        conditions: list[str] = []
        values: list[Any] = []
        for bound, comparison in ((low, ">"), (high, "<=")):
            if bound is not None:
                conditions.append(f"({self.key_expressions}) {comparison} ({parameters})")
                values += bound
        return " AND ".join(conditions) or "true", values

    def key_of(self) -> Callable[[Sequence[Any]], Key]:
        """A function that finds the key in the values of ``columns`` and ``key_selection``."""
        indices: list[int] = []
        extra = len(self.columns)
        for column in self.key:
            if column.order == KeyOrder.AS_TEXT:
                indices.append(extra)
                extra += 1
            else:
                indices.append(column.index)
        return lambda values: tuple([values[index] for index in indices])

    def sort_key(self, key: Key) -> tuple[Any, ...]:
        """What Python compares."""
        return tuple(
            [_COMPARABLE[column.order](value) for column, value in zip(self.key, key, strict=True)],
        )


def _numeric(value: Decimal) -> tuple[bool, Decimal]:
    return (True, Decimal(0)) if value.is_nan() else (False, value)


def _padded(value: str) -> str:
    return value.rstrip(" ")


def _same(value: Any) -> Any:
    return value


_COMPARABLE: dict[str, Callable[[Any], Any]] = {
    KeyOrder.NATIVE: _same,
    KeyOrder.NUMERIC: _numeric,
    KeyOrder.TEXT: _same,
    KeyOrder.PADDED: _padded,
    KeyOrder.AS_TEXT: _same,
}
