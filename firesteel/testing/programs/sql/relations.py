"""Relations of drawn queries: tables, projections, filters, aggregates, set operations and Top-N."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.testing.programs.sql.expressions import BIGINT, TIME, Column, Field, truncated

__all__ = [
    "Aggregate",
    "Distinct",
    "GroupBy",
    "Project",
    "Relation",
    "Scan",
    "SetOperation",
    "Tables",
    "TopN",
    "Values",
    "Views",
    "Where",
    "aggregated",
    "as_dict",
    "sort_key",
]

Values = tuple[Any, ...]
Tables = Mapping[str, Sequence[Values]]
"""The final rows of the tables that queries read."""


@dataclass
class Views:
    """The views that a query needs: window functions read tables that have a name."""

    statements: list[tuple[str, str]] = field(default_factory=list)

    def name_of(self, relation: Relation) -> str:
        """The name of a table with the rows of a relation."""
        if isinstance(relation, Scan):
            return relation.table
        text = relation.sql(self)
        for name, known in self.statements:
            if known == text:
                return name
        self.statements.append((f"view_{len(self.statements)}", text))
        return self.statements[-1][0]


@dataclass(frozen=True)
class Relation:
    """Rows with named columns."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        raise NotImplementedError

    @property
    def appends(self) -> bool:
        """Whether no row is ever taken back."""
        return False

    @property
    def rowtime(self) -> str | None:
        """The column with the event time, if there is one."""
        return None

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same first column and the same event time."""
        return False

    @property
    def size(self) -> int:
        """How many rows there are at most, roughly."""
        raise NotImplementedError

    def sql(self, views: Views) -> str:
        """The query."""
        raise NotImplementedError

    def rows(self, tables: Tables) -> list[Values]:
        """The rows that are left at the end."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scan(Relation):
    """A table."""

    table: str
    fields: tuple[Column, ...]
    is_changelog: bool = False
    volume: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the table."""
        return self.fields

    @property
    def appends(self) -> bool:
        """As the table."""
        return not self.is_changelog

    @property
    def rowtime(self) -> str | None:
        """The column of that type."""
        return next((column.name for column in self.fields if column.type == TIME), None)

    @property
    def size(self) -> int:
        """As the table."""
        return self.volume

    def sql(self, views: Views) -> str:
        """All columns."""
        return f"SELECT * FROM {self.table}"

    def rows(self, tables: Tables) -> list[Values]:
        """Those of the table."""
        return list(tables[self.table])


def as_dict(relation: Relation, values: Values) -> dict[str, Any]:
    """A row by the names of its columns."""
    return {column.name: value for column, value in zip(relation.columns, values, strict=True)}


@dataclass(frozen=True)
class Project(Relation):
    """Expressions with names; fields keep the event time."""

    source: Relation
    items: tuple[tuple[str, Any], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The names with the types of the expressions."""
        return tuple(Column(name, item.type) for name, item in self.items)

    @property
    def appends(self) -> bool:
        """As the source."""
        return self.source.appends

    @property
    def rowtime(self) -> str | None:
        """The name of the source's, if it is among the items."""
        at = self.source.rowtime
        return next((name for name, item in self.items if isinstance(item, Field) and item.name == at), None)

    @property
    def size(self) -> int:
        """As the source."""
        return self.source.size

    def sql(self, views: Views) -> str:
        """A SELECT."""
        items = ", ".join(f"{item.sql()} AS {name}" for name, item in self.items)
        return f"SELECT {items} FROM ({self.source.sql(views)})"

    def rows(self, tables: Tables) -> list[Values]:
        """The values for each row."""
        rows = (as_dict(self.source, values) for values in self.source.rows(tables))
        return [tuple(item.value(row) for _, item in self.items) for row in rows]


@dataclass(frozen=True)
class OfSource(Relation):
    """A relation with all rows of another, or some of them."""

    source: Relation

    @property
    def rowtime(self) -> str | None:
        """As the source."""
        return self.source.rowtime

    @property
    def is_unique(self) -> bool:
        """As the source."""
        return self.source.is_unique

    @property
    def size(self) -> int:
        """As the source."""
        return self.source.size


@dataclass(frozen=True)
class Where(OfSource):
    """The rows for which a condition is true."""

    condition: Any

    @property
    def columns(self) -> tuple[Column, ...]:
        """As the source."""
        return self.source.columns

    @property
    def appends(self) -> bool:
        """As the source."""
        return self.source.appends

    def sql(self, views: Views) -> str:
        """A WHERE."""
        return f"SELECT * FROM ({self.source.sql(views)}) WHERE {self.condition.sql()}"

    def rows(self, tables: Tables) -> list[Values]:
        """The rows that pass."""
        source = self.source
        return [values for values in source.rows(tables) if self.condition.value(as_dict(source, values)) is True]


@dataclass(frozen=True)
class Aggregate:
    """A call of an aggregate function."""

    function: str
    operand: Any = None
    is_distinct: bool = False
    filter: Any = None

    @property
    def type(self) -> str:
        """That of counts, or of the operand."""
        return BIGINT if self.function == "COUNT" else str(self.operand.type)

    def sql(self) -> str:
        """The call."""
        operand = "*" if self.operand is None else self.operand.sql()
        text = f"{self.function}({'DISTINCT ' if self.is_distinct else ''}{operand})"
        return text if self.filter is None else f"{text} FILTER (WHERE {self.filter.sql()})"

    def value(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """The result for the rows of a group."""
        if self.filter is not None:
            rows = [row for row in rows if self.filter.value(row) is True]
        if self.operand is None:
            return len(rows)
        values = [value for row in rows if (value := self.operand.value(row)) is not None]
        if self.is_distinct:
            values = list(dict.fromkeys(values))
        return aggregated(self.function, values)


def aggregated(function: str, values: Sequence[Any]) -> Any:
    """The result of an aggregate function for values that are not null."""
    if function == "COUNT":
        return len(values)
    if not values:
        return None
    if function == "AVG":
        return truncated(sum(values), len(values))
    functions: dict[str, Callable[[Sequence[Any]], Any]] = {"SUM": sum, "MIN": min, "MAX": max}
    return functions[function](values)


@dataclass(frozen=True)
class GroupBy(Relation):
    """Groups by columns, or by several sets of them; without columns one group, which is there if there is a row."""

    source: Relation
    keys: tuple[Column, ...]
    calls: tuple[tuple[str, Aggregate], ...]
    having: Any = None
    sets: str = ""
    """``ROLLUP`` or ``CUBE``."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The keys, and a column for each call."""
        return (*self.keys, *(Column(name, call.type) for name, call in self.calls))

    @property
    def size(self) -> int:
        """As the source."""
        return self.source.size * (3 if self.sets else 1)

    def sql(self, views: Views) -> str:
        """A GROUP BY."""
        keys = [column.name for column in self.keys]
        items = [*keys, *(f"{call.sql()} AS {name}" for name, call in self.calls)]
        text = f"SELECT {', '.join(items)} FROM ({self.source.sql(views)})"
        if keys:
            text += f" GROUP BY {self.sets} ({', '.join(keys)})" if self.sets else f" GROUP BY {', '.join(keys)}"
        return text if self.having is None else f"SELECT * FROM ({text}) WHERE {self.having.sql()}"

    def rows(self, tables: Tables) -> list[Values]:
        """The results of each group."""
        names = [column.name for column in self.keys]
        groups: dict[tuple[tuple[str, ...], Values], list[dict[str, Any]]] = {}
        for values in self.source.rows(tables):
            row = as_dict(self.source, values)
            for kept in self._kept(names):
                key = tuple(row[name] if name in kept else None for name in names)
                groups.setdefault((kept, key), []).append(row)
        rows = []
        for (_, key), members in groups.items():
            result = (*key, *(call.value(members) for _, call in self.calls))
            if self.having is None or self.having.value(as_dict(self, result)) is True:
                rows.append(result)
        return rows

    def _kept(self, names: list[str]) -> list[tuple[str, ...]]:
        if self.sets == "ROLLUP":
            return [tuple(names[:length]) for length in range(len(names) + 1)]
        if self.sets == "CUBE":
            subsets: list[tuple[str, ...]] = [()]
            for name in names:
                subsets += [(*subset, name) for subset in subsets]
            return subsets
        return [tuple(names)]


@dataclass(frozen=True)
class Distinct(Relation):
    """Each row once."""

    source: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        """As the source."""
        return self.source.columns

    @property
    def size(self) -> int:
        """As the source."""
        return self.source.size

    def sql(self, views: Views) -> str:
        """A SELECT DISTINCT."""
        return f"SELECT DISTINCT * FROM ({self.source.sql(views)})"

    def rows(self, tables: Tables) -> list[Values]:
        """Each row once."""
        return list(dict.fromkeys(self.source.rows(tables)))


@dataclass(frozen=True)
class SetOperation(Relation):
    """UNION, INTERSECT or EXCEPT, each also with ALL."""

    left: Relation
    right: Relation
    operation: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The names of the left side, with common types."""
        return tuple(
            Column(one.name, BIGINT if BIGINT in (one.type, two.type) else one.type)
            for one, two in zip(self.left.columns, self.right.columns, strict=True)
        )

    @property
    def appends(self) -> bool:
        """Only UNION ALL keeps all rows."""
        return self.operation == "UNION ALL" and self.left.appends and self.right.appends

    @property
    def rowtime(self) -> str | None:
        """That of both sides, if it is the same column."""
        return self.left.rowtime if self.operation == "UNION ALL" and self.left.rowtime == self.right.rowtime else None

    @property
    def size(self) -> int:
        """Of both sides."""
        return self.left.size + self.right.size

    def sql(self, views: Views) -> str:
        """Both queries."""
        return f"(SELECT * FROM ({self.left.sql(views)})) {self.operation} (SELECT * FROM ({self.right.sql(views)}))"

    def rows(self, tables: Tables) -> list[Values]:
        """The rows, as often as the operation has them."""
        left, right = Counter(self.left.rows(tables)), Counter(self.right.rows(tables))
        name, _, is_all = self.operation.partition(" ")
        if name == "UNION":
            result = left + right
        elif not is_all and name == "EXCEPT":
            return [row for row in left if row not in right]
        else:
            result = left & right if name == "INTERSECT" else left - right
        return list(result.elements()) if is_all else list(result)


def sort_key(value: Any) -> tuple[int, Any]:
    """Null is lower than any value."""
    return (0, 0) if value is None else (1, value)


@dataclass(frozen=True)
class TopN(Relation):
    """The first rows of each partition, in an order of all columns; without partition a LIMIT."""

    source: Relation
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    """Columns, and whether they descend."""
    first: int
    last: int
    rank: str = ""
    """The name of the rank's column, if it is an output."""
    has_limit: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """As the source, and the rank."""
        return (*self.source.columns, Column(self.rank, BIGINT)) if self.rank else self.source.columns

    @property
    def size(self) -> int:
        """As the source."""
        return self.source.size

    def sql(self, views: Views) -> str:
        """ROW_NUMBER with a condition, or ORDER BY with a limit."""
        order = ", ".join(f"{name} DESC" if is_descending else name for name, is_descending in self.order)
        if self.has_limit:
            text = f"SELECT * FROM ({self.source.sql(views)}) ORDER BY {order} LIMIT {self.last - self.first + 1}"
            return text if self.first == 1 else f"{text} OFFSET {self.first - 1}"
        over = f"PARTITION BY {', '.join(self.partition)} ORDER BY {order}" if self.partition else f"ORDER BY {order}"
        inner = f"SELECT *, ROW_NUMBER() OVER ({over}) AS {self.rank or 'rn'} FROM ({self.source.sql(views)})"
        columns = ", ".join(column.name for column in self.columns)
        rank = self.rank or "rn"
        test = f"{rank} <= {self.last}" if self.first == 1 else f"{rank} BETWEEN {self.first} AND {self.last}"
        return f"SELECT {columns} FROM ({inner}) WHERE {test}"

    def rows(self, tables: Tables) -> list[Values]:
        """The rows in their ranks."""
        partitions: dict[Values, list[Values]] = {}
        for values in self.source.rows(tables):
            row = as_dict(self.source, values)
            partitions.setdefault(tuple(row[name] for name in self.partition), []).append(values)
        found: list[Values] = []
        names = [column.name for column in self.source.columns]
        for members in partitions.values():
            for name, is_descending in reversed(self.order):
                at = names.index(name)
                members.sort(key=lambda values: sort_key(values[at]), reverse=is_descending)
            chosen = enumerate(members[self.first - 1 : self.last], self.first)
            found += [(*values, rank) if self.rank else values for rank, values in chosen]
        return found
