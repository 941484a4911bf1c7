"""Relations that go by event time: windows, OVER, and the first or last row of a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.testing.programs.sql.expressions import STAMP, TIME, Column
from firesteel.testing.programs.sql.joins import seconds
from firesteel.testing.programs.sql.relations import (
    Aggregate,
    OfSource,
    Relation,
    Tables,
    Values,
    Views,
    as_dict,
)

__all__ = ["Deduplicate", "Over", "WindowFunction", "WindowGroup", "WindowPair"]


@dataclass(frozen=True)
class WindowFunction:
    """TUMBLE, HOP, CUMULATE or SESSION, in milliseconds."""

    name: str
    size: int
    step: int = 0
    offset: int = 0
    is_legacy: bool = False
    """GROUP BY TUMBLE(…) in place of a function in FROM."""

    def call(self, table: str, rowtime: str, key: str | None) -> str:
        """The function in FROM."""
        by = f" PARTITION BY {key}" if self.name == "SESSION" and key else ""
        parts = [f"TABLE {table}{by}", f"DESCRIPTOR({rowtime})", *self._sizes()]
        return f"TABLE({self.name}({', '.join(parts)}))"

    def group(self, rowtime: str, part: str = "") -> str:
        """The function in GROUP BY, or its auxiliary one."""
        return f"{self.name}{part}({', '.join([rowtime, *self._sizes()])})"

    def _sizes(self) -> list[str]:
        sizes = [self.step, self.size] if self.name in ("HOP", "CUMULATE") else [self.size]
        return [seconds(size) for size in (*sizes, *([self.offset] if self.offset else []))]

    def windows(self, time: int) -> list[tuple[int, int]]:
        """The windows of a time, unless they are sessions."""
        if self.name == "TUMBLE":
            start = time - (time - self.offset) % self.size
            return [(start, start + self.size)]
        if self.name == "HOP":
            last = time - time % self.step
            starts = range(last, time - self.size, -self.step)
            return [(start, start + self.size) for start in starts]
        start = time - time % self.size
        first = time - time % self.step + self.step
        return [(start, end) for end in range(first, start + self.size + 1, self.step)]

    def sessions(self, times: list[int]) -> list[tuple[int, int]]:
        """The sessions of the times of a key."""
        found: list[tuple[int, int]] = []
        for time in sorted(times):
            if found and time <= found[-1][1]:
                found[-1] = (found[-1][0], time + self.size)
            else:
                found.append((time, time + self.size))
        return found


def _assigned(kind: WindowFunction, relation: Relation, key: str | None, tables: Tables) -> list[dict[str, Any]]:
    """The rows with ``window_start`` and ``window_end``."""
    rows = [as_dict(relation, values) for values in relation.rows(tables)]
    at = str(relation.rowtime)
    sessions: dict[Any, list[tuple[int, int]]] = {}
    if kind.name == "SESSION":
        times: dict[Any, list[int]] = {}
        for row in rows:
            times.setdefault(row[key] if key else None, []).append(row[at])
        sessions = {one: kind.sessions(all_) for one, all_ in times.items()}
    found = []
    for row in rows:
        if kind.name == "SESSION":
            windows = [each for each in sessions[row[key] if key else None] if each[0] <= row[at] < each[1]]
        else:
            windows = kind.windows(row[at])
        found += [{**row, "window_start": start, "window_end": end} for start, end in windows]
    return found


@dataclass(frozen=True)
class WindowGroup(Relation):
    """Aggregates of windows: of a key or of all rows. Columns: the key, start and end, the calls, and the time."""

    source: Relation
    window: WindowFunction
    key: Column | None
    calls: tuple[tuple[str, Aggregate], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The key, the bounds of the window, the calls, and the event time."""
        keys = (self.key,) if self.key else ()
        calls = (Column(name, call.type) for name, call in self.calls)
        return (*keys, Column("ws", STAMP), Column("we", STAMP), *calls, Column("wt", TIME))

    @property
    def appends(self) -> bool:
        """A window is complete when it has ended."""
        return True

    @property
    def rowtime(self) -> str | None:
        """The last millisecond of the window."""
        return "wt"

    @property
    def is_unique(self) -> bool:
        """Each window has one row of a key; those of CUMULATE and HOP end at different times."""
        return True

    @property
    def size(self) -> int:
        """As many as rows, or several for each."""
        return self.source.size * 3

    def sql(self, views: Views) -> str:
        """A GROUP BY of a key and a window."""
        at, table = str(self.source.rowtime), views.name_of(self.source)
        keys = [self.key.name] if self.key else []
        calls = [f"{call.sql()} AS {name}" for name, call in self.calls]
        if self.window.is_legacy:
            start, end, time = (self.window.group(at, part) for part in ("_START", "_END", "_ROWTIME"))
            source, groups = table, [*keys, self.window.group(at)]
        else:
            start, end, time = "window_start", "window_end", "window_time"
            source = self.window.call(table, at, keys[0] if keys else None)
            groups = [*keys, "window_start", "window_end", "window_time"]
        items = [*keys, f"{start} AS ws", f"{end} AS we", *calls, f"{time} AS wt"]
        return f"SELECT {', '.join(items)} FROM {source} GROUP BY {', '.join(groups)}"

    def rows(self, tables: Tables) -> list[Values]:
        """A row of each window that has rows."""
        name = self.key.name if self.key else None
        groups: dict[Values, list[dict[str, Any]]] = {}
        for row in _assigned(self.window, self.source, name, tables):
            key = (row[name],) if name else ()
            groups.setdefault((*key, row["window_start"], row["window_end"]), []).append(row)
        return [
            (*group, *(call.value(members) for _, call in self.calls), group[-1] - 1)
            for group, members in groups.items()
        ]


@dataclass(frozen=True)
class WindowPair(Relation):
    """A join of the rows of the same windows of two relations: INNER, LEFT, RIGHT, FULL, SEMI or ANTI."""

    left: Relation
    right: Relation
    key: tuple[str, str]
    window: WindowFunction
    kind: str = "INNER"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the left side, and of the right one unless it is only looked for; without event time."""
        left = tuple(Column(f"l{column.name}", column.type) for column in self._plain(self.left))
        if self.kind in ("SEMI", "ANTI"):
            return left
        return left + tuple(Column(f"r{column.name}", column.type) for column in self._plain(self.right))

    @staticmethod
    def _plain(relation: Relation) -> list[Column]:
        return [column for column in relation.columns if column.type != TIME]

    @property
    def appends(self) -> bool:
        """A window is complete when it has ended."""
        return True

    @property
    def size(self) -> int:
        """All pairs, of which few are equal."""
        return self.left.size * self.right.size // 3

    def sql(self, views: Views) -> str:
        """A join on the key and both bounds of the window."""
        sides = []
        for relation, name in ((self.left, "l"), (self.right, "r")):
            call = self.window.call(views.name_of(relation), str(relation.rowtime), None)
            sides.append(f"(SELECT * FROM {call}) AS {name}")
        on = f"l.{self.key[0]} = r.{self.key[1]} AND l.window_start = r.window_start AND l.window_end = r.window_end"
        items = [f"l.{column.name} AS l{column.name}" for column in self._plain(self.left)]
        if self.kind in ("SEMI", "ANTI"):
            test = "EXISTS" if self.kind == "SEMI" else "NOT EXISTS"
            return f"SELECT {', '.join(items)} FROM {sides[0]} WHERE {test} (SELECT 1 FROM {sides[1]} WHERE {on})"
        items += [f"r.{column.name} AS r{column.name}" for column in self._plain(self.right)]
        return f"SELECT {', '.join(items)} FROM {sides[0]} {self.kind} JOIN {sides[1]} ON {on}"

    def rows(self, tables: Tables) -> list[Values]:
        """The pairs, and rows without one."""
        one, two = self.key
        lefts = _assigned(self.window, self.left, None, tables)
        rights = _assigned(self.window, self.right, None, tables)
        names_left = [column.name for column in self._plain(self.left)]
        names_right = [column.name for column in self._plain(self.right)]
        found: list[Values] = []
        met: set[int] = set()
        for left in lefts:
            bounds = (left["window_start"], left["window_end"])
            pairs = [
                index
                for index, right in enumerate(rights)
                if left[one] is not None
                and left[one] == right[two]
                and (right["window_start"], right["window_end"]) == bounds
            ]
            met.update(pairs)
            values = tuple(left[name] for name in names_left)
            if self.kind in ("SEMI", "ANTI"):
                found += [values] if bool(pairs) == (self.kind == "SEMI") else []
                continue
            found += [(*values, *(rights[index][name] for name in names_right)) for index in pairs]
            if not pairs and self.kind in ("LEFT", "FULL"):
                found.append((*values, *(None for _ in names_right)))
        if self.kind in ("RIGHT", "FULL"):
            alone = [right for index, right in enumerate(rights) if index not in met]
            found += [(*(None for _ in names_left), *(right[name] for name in names_right)) for right in alone]
        return found


@dataclass(frozen=True)
class Over(OfSource):
    """Aggregates of the rows before each row, in the order of event time."""

    key: str | None
    calls: tuple[tuple[str, Aggregate], ...]
    preceding: int | None = None
    """Milliseconds, or rows; None for all."""
    has_rows: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the source and of the calls."""
        return (*self.source.columns, *(Column(name, call.type) for name, call in self.calls))

    @property
    def appends(self) -> bool:
        """Rows come once their time has passed."""
        return True

    def sql(self, views: Views) -> str:
        """Calls with OVER."""
        start = "UNBOUNDED"
        if self.preceding is not None:
            start = str(self.preceding) if self.has_rows else seconds(self.preceding)
        unit = "ROWS" if self.has_rows else "RANGE"
        by = f"PARTITION BY {self.key} " if self.key else ""
        over = f"({by}ORDER BY {self.source.rowtime} {unit} BETWEEN {start} PRECEDING AND CURRENT ROW)"
        items = [column.name for column in self.source.columns]
        items += [f"{call.sql()} OVER {over} AS {name}" for name, call in self.calls]
        return f"SELECT {', '.join(items)} FROM ({self.source.sql(views)})"

    def rows(self, tables: Tables) -> list[Values]:
        """Each row with its results."""
        at = str(self.source.rowtime)
        groups: dict[Any, list[tuple[Values, dict[str, Any]]]] = {}
        for values in self.source.rows(tables):
            row = as_dict(self.source, values)
            groups.setdefault(row[self.key] if self.key else None, []).append((values, row))
        found = []
        for members in groups.values():
            members.sort(key=lambda member: member[1][at])
            for index, (values, row) in enumerate(members):
                if self.has_rows:
                    first = 0 if self.preceding is None else max(0, index - self.preceding)
                    frame = [each for _, each in members[first : index + 1]]
                else:
                    low = None if self.preceding is None else row[at] - self.preceding
                    frame = [each for _, each in members if each[at] <= row[at] and (low is None or each[at] >= low)]
                found.append((*values, *(call.value(frame) for _, call in self.calls)))
        return found


@dataclass(frozen=True)
class Deduplicate(Relation):
    """The first or the last row of each key, in event time; the source has one row of a key and a time."""

    source: Relation
    key: str
    is_last: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        """As the source."""
        return self.source.columns

    @property
    def size(self) -> int:
        """As the source."""
        return self.source.size

    def sql(self, views: Views) -> str:
        """The row with the first number."""
        order = f"{self.source.rowtime} {'DESC' if self.is_last else 'ASC'}"
        columns = ", ".join(column.name for column in self.columns)
        number = f"ROW_NUMBER() OVER (PARTITION BY {self.key} ORDER BY {order}) AS rn"
        return f"SELECT {columns} FROM (SELECT *, {number} FROM ({self.source.sql(views)})) WHERE rn = 1"

    def rows(self, tables: Tables) -> list[Values]:
        """One row of each key."""
        at = str(self.source.rowtime)
        chosen: dict[Any, tuple[int, Values]] = {}
        for values in self.source.rows(tables):
            row = as_dict(self.source, values)
            known = chosen.get(row[self.key])
            if known is None or (row[at] > known[0]) == self.is_last:
                chosen[row[self.key]] = (row[at], values)
        return [values for _, values in chosen.values()]
