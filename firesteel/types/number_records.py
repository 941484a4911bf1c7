"""Numeric records, kept as columns until one of them is accessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from firesteel.common.types import named_rows

__all__ = ["NumberRecords"]


class NumberRecords(Sequence[Any]):
    """Rows with names, or tuples, of ints and floats, as numpy arrays of 8 bytes a number.

    A source that reads columns may emit these instead of a list: what follows it in the chain reads them as a list,
    but an exchange can send them on as they are.
    """

    __slots__ = ("_records", "columns", "names")

    def __init__(self, columns: Sequence[Any], names: tuple[str, ...] | None):
        self.columns = tuple(columns)
        self.names = names
        """Those of Rows; None if the records are tuples."""
        self._records: list[Any] | None = None

    def to_list(self) -> list[Any]:
        """The records themselves."""
        if self._records is None:
            rows = zip(*(column.tolist() for column in self.columns), strict=True)
            self._records = list(rows) if self.names is None else list(named_rows(self.names, rows))
        return self._records

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_list())

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> NumberRecords: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return NumberRecords([column[index] for column in self.columns], self.names)
        if not -len(self) <= index < len(self):
            raise IndexError(f"There are {len(self)} records, and none at {index}.")
        position = index % len(self)
        return self[position : position + 1].to_list()[0]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberRecords):
            return self.to_list() == other.to_list()
        return self.to_list() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"NumberRecords({self.to_list()!r})"
