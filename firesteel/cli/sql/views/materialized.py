"""The rows of a changelog as they are now."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from firesteel.cli.sql.execution.result import ResultRow

__all__ = ["ChangeLog", "MaterializedTable"]

_INSERTIONS = ("+I", "+U")


class MaterializedTable:
    """Rows in order of arrival; an update leaves a row where it is. Beyond ``max_rows`` the oldest are forgotten."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max(1, max_rows)
        self._rows: dict[int, Sequence[str]] = {}
        self._places: dict[Sequence[str], list[int]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._rows)

    def apply(self, changes: Iterable[ResultRow]) -> None:
        """Applies changes in their order."""
        updated: int | None = None
        for kind, row in changes:
            row = tuple(row)
            if kind in _INSERTIONS:
                # the new row of an update takes the place of the old one, which came just before
                place = updated if kind == "+U" and updated is not None else next(self._numbers)
                self._rows[place] = row
                self._places.setdefault(row, []).append(place)
                updated = None
                if len(self._rows) > self._max_rows:
                    self._forget(next(iter(self._rows)))
                continue
            if updated is not None:
                self._rows.pop(updated, None)
            updated = self._remove(row, keep=kind == "-U")
        if updated is not None:
            self._rows.pop(updated, None)

    def rows(self, start: int = 0, stop: int | None = None) -> list[Sequence[str]]:
        """The rows from one number to another."""
        return list(itertools.islice(self._rows.values(), start, stop))

    def _remove(self, row: Sequence[str], *, keep: bool) -> int | None:
        """Removes the last row that is like this one; with ``keep``, its place stays for the next."""
        places = self._places.get(row)
        if not places:
            return None  # forgotten
        place = places.pop()
        if not places:
            del self._places[row]
        if keep:
            return place
        del self._rows[place]
        return None

    def _forget(self, place: int) -> None:
        row = self._rows.pop(place)
        places = self._places[row]
        places.remove(place)
        if not places:
            del self._places[row]


class ChangeLog:
    """The latest changes."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._rows: list[Sequence[str]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def apply(self, changes: Iterable[ResultRow]) -> None:
        """Adds changes."""
        self._rows += [(kind, *row) for kind, row in changes]
        del self._rows[: -self._max_rows]

    def rows(self, start: int = 0, stop: int | None = None) -> list[Sequence[str]]:
        """The changes from one number to another."""
        return self._rows[start:stop]
