"""What all statements have."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ObjectPath", "Options", "Source", "Statement"]

ObjectPath = tuple[str, ...]
"""The parts of the name of an object: catalog, database and name, or the last ones of them."""

Options = tuple[tuple[str, str], ...]
"""Keys and values of WITH (…) and SET (…), in the order of the text."""


@dataclass(frozen=True)
class Source:
    """Where a statement stands in a text."""

    sql: str
    """The whole text."""
    start: int
    end: int

    @property
    def text(self) -> str:
        """The statement."""
        return self.sql[self.start : self.end]

    @property
    def line(self) -> int:
        """The line of the first character, from 1."""
        return self.sql.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The column of the first character, from 1."""
        return self.start - self.sql.rfind("\n", 0, self.start)


@dataclass(frozen=True)
class Statement:
    """A statement; statements are equal whatever their source."""

    source: Source | None = field(default=None, kw_only=True, compare=False, repr=False)
