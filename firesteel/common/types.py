"""Rows: values in a fixed order, with names if they were given any."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, NoReturn

__all__ = ["Row", "RowKind", "named_row", "named_rows", "values_by_name"]


class RowKind(Enum):
    """The kind of change that a row describes in a changelog."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT_FORM[self]


_SHORT_FORM = {
    RowKind.INSERT: "+I",
    RowKind.UPDATE_BEFORE: "-U",
    RowKind.UPDATE_AFTER: "+U",
    RowKind.DELETE: "-D",
}
_INSERT = RowKind.INSERT

_shared_names: dict[tuple[str, ...], tuple[str, ...]] = {}
_MAX_SHARED = 10_000


def _share(names: tuple[str, ...]) -> tuple[str, ...]:
    # Rows of one shape hold one tuple of names: a pickled batch then carries the names once, not once a row.
    shared = _shared_names.get(names)
    if shared is None:
        if len(_shared_names) >= _MAX_SHARED:
            return names
        shared = _shared_names[names] = names
    return shared


def _named_row(names: tuple[str, ...], *values: Any) -> Row:
    row = _allocate(Row)
    row._fields = names
    row._values = list(values)
    row._row_kind = _INSERT
    return row


def _changed_row(kind: int, names: tuple[str, ...] | None, *values: Any) -> Row:
    row = Row(*values)
    row._fields = names
    row._row_kind = RowKind(kind)
    return row


def _reduce_row(row: Row) -> tuple[Any, ...]:
    if row._row_kind is not _INSERT:
        return _changed_row, (row._row_kind.value, row._fields, *row._values)
    if row._fields is None:
        return Row, tuple(row._values)
    return _named_row, (row._fields, *row._values)


class Row:
    """Values in order; ``row[0]``, and for a row with names also ``row["name"]`` and ``row.name``.

    >>> row = Row(name="Alice", age=11)
    >>> row["name"], row.age, row[1], "name" in row
    ('Alice', 11, 11, True)

    A row of names makes rows with those names:

    >>> Person = Row("name", "age")
    >>> Person("Alice", 11)
    Row(name='Alice', age=11)

    Rows are equal if kind, names and values are; names may come in any order.
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: tuple[str, ...] | None
    _row_kind: RowKind
    _values: list[Any]

    def __init__(self, /, *args: Any, **kwargs: Any):
        if kwargs:
            if args:
                raise ValueError("A Row takes values or names with values, not both")
            names = tuple(kwargs)
            self._fields = _shared_names.get(names) or _share(names)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, /, *args: Any, **kwargs: Any) -> Row:
        """A row of that kind."""
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """The values by name; with ``recursive`` also the rows inside, and those in lists and dicts."""
        if self._fields is None:
            raise TypeError("A Row without field names cannot become a dict")
        values = map(_to_dict, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """The kind of change this row stands for."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Changes the kind."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: Iterable[str]) -> None:
        """Gives the values names, in order."""
        self._fields = _share(tuple(field_names))

    def get_field_names(self) -> list[str] | None:
        """The names in order, None if the row has none."""
        return None if self._fields is None else list(self._fields)

    def get_fields_by_names(self, names: Iterable[str]) -> list[Any]:
        """The values of those names, in that order; all values of a row without names."""
        fields = self._fields
        wanted = tuple(names)
        if fields is None or wanted == fields:
            return self._values
        if missing := [name for name in wanted if name not in fields]:
            raise ValueError(f"{self!r} has no field {', '.join(map(repr, missing))}")
        return [self._values[fields.index(name)] for name in wanted]

    def __getitem__(self, item: Any) -> Any:
        if item.__class__ is str:
            try:
                return self._values[self._fields.index(item)]  # type: ignore[union-attr]
            except (AttributeError, ValueError):
                self._no_field(item)
        return self._values[item]

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            if self._fields is None or key not in self._fields:
                self._no_field(key)
            key = self._fields.index(key)
        self._values[key] = value

    def _no_field(self, name: str) -> NoReturn:
        if self._fields is None:
            raise ValueError(f"No field {name!r}: this Row has positions only, 0 to {len(self._values) - 1}") from None
        raise ValueError(f"{name!r} is not one of the fields {', '.join(self._fields)}") from None

    def __getattr__(self, item: str) -> Any:
        # Called for what the class does not have. Private names fail at once: copy asks for them.
        if item[:1] != "_":
            try:
                return self._values[self._fields.index(item)]  # type: ignore[union-attr]
            except (AttributeError, ValueError):
                pass
        raise AttributeError(f"Row has no field {item!r}", name=item, obj=self)

    def __contains__(self, item: Any) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __call__(self, *args: Any) -> Row:
        """A row of these values, with this row's values as its names."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} names {len(self._values)} fields, got {len(args)} values: {args!r}")
        row = _named_row(_share(tuple(self._values[: len(args)])), *args)
        row._row_kind = self._row_kind
        return row

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return False
        assert isinstance(other, Row)
        if self._row_kind is not other._row_kind:
            return False
        mine, theirs = self._fields, other._fields
        if mine == theirs:
            return self._values == other._values
        if mine is None or theirs is None or sorted(mine) != sorted(theirs):
            return False
        return self._values == [other._values[theirs.index(name)] for name in mine]

    def __hash__(self) -> int:
        # Rows with names are equal in any order of the names, so their hash must not depend on the order.
        return hash(tuple(self._values)) if self._fields is None else hash(frozenset(self._values))

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduce_row(self)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        fields = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in fields)})"

    def _is_retract_msg(self) -> bool:
        return self._row_kind is RowKind.UPDATE_BEFORE or self._row_kind is RowKind.DELETE

    def _is_accumulate_msg(self) -> bool:
        return not self._is_retract_msg()


_allocate = Row.__new__


def named_rows(names: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> list[Row]:
    """Rows that all have these names, from the values of each: for sources, which make many.

    >>> named_rows(("name", "age"), [("Alice", 11), ("Bob", 12)])
    [Row(name='Alice', age=11), Row(name='Bob', age=12)]
    """
    names, allocate, insert = _share(names), _allocate, _INSERT
    made: list[Row] = []
    add = made.append
    for values in rows:
        row = allocate(Row)
        row._fields = names
        row._values = list(values)
        row._row_kind = insert
        add(row)
    return made


def named_row(names: tuple[str, ...], values: list[Any]) -> Row:
    """A row with these names and values."""
    return _named_row(_share(names), *values)


def values_by_name(record: Any, names: Sequence[str]) -> Sequence[Any] | None:
    """The values of a Row, tuple, list, dict or object for fields of these names; None for what has no fields.

    Values without names are taken in order. A Row with other names is a ValueError.
    """
    if isinstance(record, Row):
        return record._values if record._fields is None else record.get_fields_by_names(names)
    if isinstance(record, (tuple, list)):
        return record
    fields = record if isinstance(record, dict) else getattr(record, "__dict__", None)
    return None if fields is None else [fields.get(name) for name in names]


# The pickler finds this before it looks for __reduce__ on each row: a sixth of the time.
copyreg.pickle(Row, _reduce_row)


def _to_dict(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_to_dict(item) for item in value]
    if isinstance(value, dict):
        return {key: _to_dict(item) for key, item in value.items()}
    return value
