"""Joins of drawn queries: regular ones, with subqueries, by intervals of time, and with the version of a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.testing.programs.sql.expressions import Column
from firesteel.testing.programs.sql.relations import Relation, Tables, Values, Views, aggregated, as_dict

__all__ = ["IntervalMatch", "Join", "ScalarTest", "SemiJoin", "TemporalJoin", "seconds"]


def seconds(millis: int) -> str:
    """An interval as text.

    >>> seconds(40)
    "INTERVAL '0.040' SECOND"
    """
    return f"INTERVAL '{millis // 1000}.{millis % 1000:03}' SECOND"


def _renamed(columns: tuple[Column, ...], prefix: str) -> tuple[Column, ...]:
    return tuple(Column(f"{prefix}{column.name}", column.type) for column in columns)


@dataclass(frozen=True)
class _TwoSides(Relation):
    """Pairs of rows; columns have the prefixes ``l`` and ``r``."""

    left: Relation
    right: Relation
    keys: tuple[tuple[str, str], ...]
    """Columns of both sides that are equal."""
    kind: str = "INNER"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of both sides."""
        return _renamed(self.left.columns, "l") + _renamed(self.right.columns, "r")

    @property
    def size(self) -> int:
        """All pairs, of which few are equal."""
        return self.left.size * self.right.size // 3 + self.left.size + self.right.size

    def _select(self, views: Views, join: str, on: str) -> str:
        items = [f"l.{column.name} AS l{column.name}" for column in self.left.columns]
        items += [f"r.{column.name} AS r{column.name}" for column in self.right.columns]
        left = f"({self.left.sql(views)}) AS l"
        return f"SELECT {', '.join(items)} FROM {left} {self.kind} JOIN {join} ON {on}"

    def _equal(self) -> list[str]:
        return [f"l.{one} = r.{two}" for one, two in self.keys]

    def _joined(self, tables: Tables) -> list[Values]:
        lefts, rights = self.left.rows(tables), self.right.rows(tables)
        nothing_left, nothing_right = (None,) * len(self.left.columns), (None,) * len(self.right.columns)
        found: list[Values] = []
        met: set[int] = set()
        for one in lefts:
            pairs = list(self._matches(one, rights))
            met.update(pairs)
            found += [(*one, *rights[index]) for index in pairs]
            if not pairs and self.kind in ("LEFT", "FULL"):
                found.append((*one, *nothing_right))
        if self.kind in ("RIGHT", "FULL"):
            found += [(*nothing_left, *two) for index, two in enumerate(rights) if index not in met]
        return found

    def _matches(self, one: Values, rights: list[Values]) -> Iterator[int]:
        left = as_dict(self.left, one)
        for index, two in enumerate(rights):
            right = as_dict(self.right, two)
            equal = all(left[a] is not None and left[a] == right[b] for a, b in self.keys)
            if equal and self._test(left, right):
                yield index

    def _test(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        return True


@dataclass(frozen=True)
class Join(_TwoSides):
    """A regular join: INNER, LEFT, RIGHT or FULL."""

    less: tuple[str, str] | None = None
    """A column of the left side that is below one of the right side."""

    def sql(self, views: Views) -> str:
        """A JOIN."""
        tests = self._equal() + ([f"l.{self.less[0]} < r.{self.less[1]}"] if self.less else [])
        return self._select(views, f"({self.right.sql(views)}) AS r", " AND ".join(tests))

    def rows(self, tables: Tables) -> list[Values]:
        """The pairs, and rows without one."""
        return self._joined(tables)

    def _test(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        if self.less is None:
            return True
        one, two = left[self.less[0]], right[self.less[1]]
        return one is not None and two is not None and bool(one < two)


@dataclass(frozen=True)
class IntervalMatch(_TwoSides):
    """A join of rows whose times are close."""

    lower: int = 0
    upper: int = 0

    @property
    def appends(self) -> bool:
        """Rows without a pair come once there can be none."""
        return True

    @property
    def rowtime(self) -> str | None:
        """That of the left side, which is there unless rows of the right side come alone."""
        return f"l{self.left.rowtime}" if self.kind in ("INNER", "LEFT") else None

    def sql(self, views: Views) -> str:
        """A JOIN with bounds of the right side's time."""
        one, two = f"l.{self.left.rowtime}", f"r.{self.right.rowtime}"
        low = f"{one} - {seconds(-self.lower)}" if self.lower < 0 else f"{one} + {seconds(self.lower)}"
        tests = [*self._equal(), f"{two} BETWEEN {low} AND {one} + {seconds(self.upper)}"]
        return self._select(views, f"({self.right.sql(views)}) AS r", " AND ".join(tests))

    def rows(self, tables: Tables) -> list[Values]:
        """The pairs, and rows without one."""
        return self._joined(tables)

    def _test(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        apart = right[str(self.right.rowtime)] - left[str(self.left.rowtime)]
        return bool(self.lower <= apart <= self.upper)


@dataclass(frozen=True)
class TemporalJoin(_TwoSides):
    """A join with the version that a key had at the time of the left row. The right side has one row of a time."""

    @property
    def appends(self) -> bool:
        """Rows come once their time has passed."""
        return True

    @property
    def rowtime(self) -> str | None:
        """That of the left side."""
        return f"l{self.left.rowtime}"

    def sql(self, views: Views) -> str:
        """A JOIN with a view of the last row of each key."""
        key, at = self.keys[0][1], self.right.rowtime
        columns = ", ".join(column.name for column in self.right.columns)
        number = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {at} DESC) AS version"
        text = f"SELECT {columns} FROM (SELECT *, {number} FROM ({self.right.sql(views)})) WHERE version = 1"
        name = f"versions_{len(views.statements)}"
        views.statements.append((name, text))
        return self._select(views, f"{name} FOR SYSTEM_TIME AS OF l.{self.left.rowtime} AS r", self._equal()[0])

    def rows(self, tables: Tables) -> list[Values]:
        """Each left row with its version."""
        return self._joined(tables)

    def _matches(self, one: Values, rights: list[Values]) -> Iterator[int]:
        """The last version of the key; as in Flink, null is a key too."""
        left, (mine, theirs) = as_dict(self.left, one), self.keys[0]
        names = [column.name for column in self.right.columns]
        key, at = names.index(theirs), names.index(str(self.right.rowtime))
        now = left[str(self.left.rowtime)]
        known = [index for index, two in enumerate(rights) if two[key] == left[mine] and two[at] <= now]
        if known:
            yield max(known, key=lambda index: rights[index][at])


@dataclass(frozen=True)
class Subquery(Relation):
    """Rows of the left side, chosen by a subquery over the right side."""

    left: Relation
    right: Relation
    key: tuple[str, str]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the left side."""
        return self.left.columns

    @property
    def size(self) -> int:
        """As the left side."""
        return self.left.size


@dataclass(frozen=True)
class SemiJoin(Subquery):
    """Rows with, or without, a row of a subquery: EXISTS, NOT EXISTS, IN, NOT IN."""

    test: str

    def sql(self, views: Views) -> str:
        """A condition with a subquery."""
        one, two = self.key
        left, right = self.left.sql(views), self.right.sql(views)
        if self.test.endswith("EXISTS"):
            condition = f"{self.test} (SELECT 1 FROM ({right}) AS r WHERE r.{two} = l.{one})"
        else:
            condition = f"l.{one} {self.test} (SELECT {two} FROM ({right}))"
        return f"SELECT * FROM ({left}) AS l WHERE {condition}"

    def rows(self, tables: Tables) -> list[Values]:
        """The rows for which the condition is true."""
        one, two = self.key
        others = [as_dict(self.right, values)[two] for values in self.right.rows(tables)]
        return [values for values in self.left.rows(tables) if self._passes(as_dict(self.left, values)[one], others)]

    def _passes(self, value: Any, others: list[Any]) -> bool:
        is_met = value is not None and value in others
        if self.test in ("EXISTS", "IN"):
            return is_met
        if self.test == "NOT EXISTS" or not others:
            return not is_met
        return value is not None and not is_met and None not in others


@dataclass(frozen=True)
class ScalarTest(Subquery):
    """Rows that are at least an aggregate of a subquery."""

    function: str

    def sql(self, views: Views) -> str:
        """A comparison with a subquery."""
        inner = f"SELECT {self.function}({self.key[1]}) FROM ({self.right.sql(views)})"
        return f"SELECT * FROM ({self.left.sql(views)}) WHERE {self.key[0]} >= ({inner})"

    def rows(self, tables: Tables) -> list[Values]:
        """The rows for which it is true."""
        values = [as_dict(self.right, row)[self.key[1]] for row in self.right.rows(tables)]
        bound = aggregated(self.function, [value for value in values if value is not None])
        if bound is None:
            return []
        rows = [(as_dict(self.left, row)[self.key[0]], row) for row in self.left.rows(tables)]
        return [row for value, row in rows if value is not None and value >= bound]
