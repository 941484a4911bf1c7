"""Draws queries over given tables."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from firesteel.testing.programs.sql.expressions import (
    NUMBERS,
    STAMP,
    STRING,
    TIME,
    Column,
    Field,
    draw_condition,
    draw_expression,
)
from firesteel.testing.programs.sql.joins import IntervalMatch, Join, ScalarTest, SemiJoin, TemporalJoin
from firesteel.testing.programs.sql.relations import (
    Aggregate,
    Distinct,
    GroupBy,
    Project,
    Relation,
    Scan,
    SetOperation,
    TopN,
    Where,
)
from firesteel.testing.programs.sql.timed import Deduplicate, Over, WindowFunction, WindowGroup, WindowPair

__all__ = ["draw_relation"]

_MAX_PAIRS = 30_000
_MAX_COLUMNS = 9
_SIZES = (20, 60, 200)


def draw_relation(rng: random.Random, scans: Sequence[Scan]) -> Relation:
    """Draws a query that reads some of the tables."""
    return _Drawer(rng, scans).draw(rng.choices((1, 2, 3, 5), (2, 4, 3, 1))[0])


class _Drawer:
    def __init__(self, rng: random.Random, scans: Sequence[Scan]):
        self._rng = rng
        self._scans = scans
        self._names = 0

    def draw(self, depth: int) -> Relation:
        """Puts some operations on a table."""
        relation: Relation = self._rng.choice(self._scans)
        for _ in range(depth):
            if isinstance(relation, TopN) and relation.rank:
                break  # a further condition on the rank is refused
            drawn = self._step(relation)
            relation = relation if drawn is None else drawn
        return relation

    def _step(self, relation: Relation) -> Relation | None:
        rng = self._rng
        if len(relation.columns) > _MAX_COLUMNS:
            return self._project(relation)
        plain = [
            self._project, self._where, self._group, self._group, self._distinct, self._top, self._set_operation,
            self._join, self._join, self._semi_join, self._scalar,
        ]  # fmt: skip
        timed = [self._window, self._window, self._over, self._interval, self._temporal, self._window_pair]
        if not relation.appends or relation.rowtime is None:
            return rng.choice(plain)(relation)
        if relation.is_unique and rng.random() < 0.25:
            return self._deduplicate(relation)
        return rng.choice(timed if rng.random() < 0.6 else plain)(relation)

    # -- parts --------------------------------------------------------------------------------------------

    def _name(self) -> str:
        self._names += 1
        return f"c{self._names}"

    def _pick(self, relation: Relation, *types: str) -> str | None:
        names = [column.name for column in relation.columns if column.type in types]
        return self._rng.choice(names) if names else None

    def _key(self, relation: Relation) -> str | None:
        """A column with few values, most of the time."""
        if self._rng.random() < 0.7:
            few = [
                column.name
                for column in relation.columns
                if column.name.endswith(("k", "s")) and column.type in (*NUMBERS, STRING)
            ]
            if few:
                return self._rng.choice(few)
        return self._pick(relation, *NUMBERS, STRING)

    def _type(self, relation: Relation, name: str) -> str:
        return next(column.type for column in relation.columns if column.name == name)

    def _calls(self, relation: Relation, *, is_simple: bool = False) -> tuple[tuple[str, Aggregate], ...]:
        count = self._rng.choice((1, 2, 3))
        return tuple((self._name(), self._call(relation, is_simple=is_simple)) for _ in range(count))

    def _call(self, relation: Relation, *, is_simple: bool) -> Aggregate:
        rng = self._rng
        condition = None if is_simple or rng.random() < 0.75 else draw_condition(rng, relation.columns, 0)
        if rng.random() < 0.25:
            return Aggregate("COUNT", filter=condition)
        function = rng.choice(("COUNT", "SUM", "SUM", "MIN", "MAX", "AVG"))
        types = NUMBERS if function in ("SUM", "AVG") else (*NUMBERS, STRING)
        name = self._pick(relation, *types)
        if name is None:
            return Aggregate("COUNT", filter=condition)
        is_distinct = not is_simple and function in ("COUNT", "SUM") and rng.random() < 0.3
        return Aggregate(function, Field(name, self._type(relation, name)), is_distinct, condition)

    def _other(self, relation: Relation) -> Relation | None:
        """A small relation to join with."""
        other = self.draw(self._rng.choices((0, 1), (3, 2))[0])
        if relation.size * other.size > _MAX_PAIRS or len(other.columns) > _MAX_COLUMNS - 2:
            return None
        return other

    def _keys(self, left: Relation, right: Relation) -> tuple[str, str] | None:
        """Columns that can be equal."""
        one = self._key(left)
        if one is None:
            return None
        types = (STRING,) if self._type(left, one) == STRING else NUMBERS
        for _ in range(4):
            two = self._key(right)
            if two is not None and self._type(right, two) in types:
                return one, two
        return None

    # -- relations ----------------------------------------------------------------------------------------

    def _project(self, relation: Relation) -> Relation:
        rng = self._rng
        kept = [column for column in relation.columns if rng.random() < 0.6 and column.type != TIME][:5]
        items: list[tuple[str, Any]] = [(column.name, Field(column.name, column.type)) for column in kept]
        items += [(self._name(), draw_expression(rng, relation.columns)) for _ in range(rng.choice((1, 2)))]
        if relation.rowtime is not None and rng.random() < 0.8:
            items.append((relation.rowtime, Field(relation.rowtime, TIME)))
        return Project(relation, tuple(items))

    def _where(self, relation: Relation) -> Relation:
        return Where(relation, draw_condition(self._rng, relation.columns, 2))

    def _group(self, relation: Relation) -> Relation:
        rng = self._rng
        names = list(dict.fromkeys(name for _ in range(rng.choice((0, 1, 1, 2))) if (name := self._key(relation))))
        keys = tuple(Column(name, self._type(relation, name)) for name in names)
        calls = self._calls(relation)
        sets = rng.choice(("ROLLUP", "CUBE")) if len(keys) == 2 and rng.random() < 0.3 else ""
        made = GroupBy(relation, keys, calls, None, sets)
        if rng.random() < 0.25:
            return GroupBy(relation, keys, calls, draw_condition(rng, made.columns, 1), sets)
        return made

    def _distinct(self, relation: Relation) -> Relation:
        names = list(dict.fromkeys(name for _ in range(2) if (name := self._key(relation))))
        if not names:
            return Distinct(relation)
        return Distinct(Project(relation, tuple((name, Field(name, self._type(relation, name))) for name in names)))

    def _top(self, relation: Relation) -> Relation | None:
        rng = self._rng
        columns = [column.name for column in relation.columns]
        rng.shuffle(columns)
        order = tuple((name, rng.random() < 0.5) for name in columns)
        first = rng.choice((1, 1, 1, 2))
        last = first + rng.choice((0, 1, 4))
        if rng.random() < 0.2:
            return TopN(relation, (), order, first, last, has_limit=True)
        key = self._key(relation) if rng.random() < 0.8 else None
        return TopN(relation, (key,) if key else (), order, first, last, rng.choice(("", self._name())))

    def _set_operation(self, relation: Relation) -> Relation | None:
        other = self._other(relation)
        if other is None:
            return None
        sides = []
        wanted = [one for one in (self._pick(relation, *NUMBERS), self._pick(relation, STRING)) if one]
        if not wanted:
            return None
        chosen = [self._type(relation, name) for name in wanted]
        partners = [self._pick(other, *((STRING,) if kind == STRING else NUMBERS)) for kind in chosen]
        if None in partners:
            return None
        for side, names in ((relation, wanted), (other, partners)):
            items = [(f"u{index}", Field(str(name), self._type(side, str(name)))) for index, name in enumerate(names)]
            if relation.rowtime and other.rowtime:
                items.append(("ut", Field(str(side.rowtime), TIME)))
            sides.append(Project(side, tuple(items)))
        operations = ["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
        return SetOperation(sides[0], sides[1], self._rng.choice(operations))

    def _join(self, relation: Relation) -> Relation | None:
        other = self._other(relation)
        keys = self._keys(relation, other) if other is not None else None
        if other is None or keys is None:
            return None
        one, two = self._pick(relation, *NUMBERS), self._pick(other, *NUMBERS)
        less = (one, two) if one and two and self._rng.random() < 0.3 else None
        kind = self._rng.choice(("INNER", "INNER", "LEFT", "RIGHT", "FULL"))
        return Join(_without_time(relation), _without_time(other), (keys,), kind, less)

    def _semi_join(self, relation: Relation) -> Relation | None:
        other = self._other(relation)
        keys = self._keys(relation, other) if other is not None else None
        if other is None or keys is None:
            return None
        test = self._rng.choice(("EXISTS", "NOT EXISTS", "IN", "NOT IN"))
        return SemiJoin(_without_time(relation), _without_time(other), keys, test)

    def _scalar(self, relation: Relation) -> Relation | None:
        other = self._other(relation)
        one = self._pick(relation, *NUMBERS)
        two = self._pick(other, *NUMBERS) if other is not None else None
        if other is None or one is None or two is None:
            return None
        function = self._rng.choice(("MIN", "MAX", "AVG"))
        return ScalarTest(_without_time(relation), _without_time(other), (one, two), function)

    def _kind(self, *, has_sessions: bool = True) -> WindowFunction:
        rng = self._rng
        name = rng.choice(("TUMBLE", "HOP", "CUMULATE", "SESSION") if has_sessions else ("TUMBLE", "HOP", "CUMULATE"))
        size = rng.choice(_SIZES)
        is_legacy = has_sessions and name != "CUMULATE" and rng.random() < 0.25
        step = size // rng.choice((2, 4)) if name in ("HOP", "CUMULATE") else 0
        offset = rng.choice((0, 0, 7)) if name == "TUMBLE" and not is_legacy else 0
        return WindowFunction(name, 12 if name == "SESSION" else size, step, offset, is_legacy)

    def _window(self, relation: Relation) -> Relation:
        name = self._key(relation) if self._rng.random() < 0.75 else None
        key = Column(name, self._type(relation, name)) if name else None
        return WindowGroup(relation, self._kind(), key, self._calls(relation))

    def _over(self, relation: Relation) -> Relation:
        rng = self._rng
        has_rows = relation.is_unique and rng.random() < 0.5
        key = relation.columns[0].name if has_rows else self._key(relation) if rng.random() < 0.8 else None
        preceding = rng.choice((None, 2 if has_rows else 40))
        return Over(relation, key, self._calls(relation, is_simple=True), preceding, has_rows)

    def _deduplicate(self, relation: Relation) -> Relation | None:
        first = relation.columns[0]
        return None if first.type == STAMP else Deduplicate(relation, first.name, self._rng.random() < 0.5)

    def _timed(self, relation: Relation) -> Relation | None:
        """Another relation with event time."""
        for _ in range(4):
            other = self._other(relation)
            if other is not None and other.appends and other.rowtime is not None:
                return other
        return None

    def _interval(self, relation: Relation) -> Relation | None:
        other = self._timed(relation)
        keys = self._keys(relation, other) if other is not None else None
        if other is None or keys is None:
            return None
        kind = self._rng.choice(("INNER", "INNER", "LEFT", "RIGHT", "FULL"))
        return IntervalMatch(
            relation, other, (keys,), kind, -self._rng.choice((0, 8, 40)), self._rng.choice((0, 8, 40))
        )

    def _temporal(self, relation: Relation) -> Relation | None:
        other = self._timed(relation)
        key = self._key(other) if other is not None else None
        if other is None or key is None:
            return None
        window = WindowFunction("TUMBLE", self._rng.choice((8, 20)))
        versions = WindowGroup(other, window, Column(key, self._type(other, key)), self._calls(other))
        for _ in range(4):
            mine = self._key(relation)
            if mine is not None and self._type(relation, mine) == self._type(other, key):
                return TemporalJoin(relation, versions, ((mine, key),), self._rng.choice(("INNER", "LEFT")))
        return None

    def _window_pair(self, relation: Relation) -> Relation | None:
        other = self._timed(relation)
        keys = self._keys(relation, other) if other is not None else None
        if other is None or keys is None:
            return None
        kind = self._rng.choice(("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"))
        return WindowPair(relation, other, keys, self._kind(has_sessions=False), kind)


def _without_time(relation: Relation) -> Relation:
    """The relation without its time attributes, which a regular join must not read."""
    if not any(column.type == TIME for column in relation.columns):
        return relation
    kept = [(column.name, Field(column.name, column.type)) for column in relation.columns if column.type != TIME]
    return Project(relation, tuple(kept))
