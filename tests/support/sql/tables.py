"""Generated tables: rows with nulls, duplicates and rows out of order, and a changelog with updates and deletions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.common.types import RowKind
from firesteel.table import DataTypes
from firesteel.types.logical import RowType, TimestampKind, TimestampType

__all__ = ["TABLES", "Change", "GeneratedTable", "materialized"]

Change = tuple[RowKind, tuple[Any, ...]]
"""A row with its kind; values as rows hold them inside of the engine."""
START_MS = 1_700_000_000_000
DELAY_MS = 2_000
"""How far rows are out of order, at most."""
_ROWTIME = TimestampType(3, TimestampKind.ROWTIME)


@dataclass(frozen=True, eq=False)
class GeneratedTable:
    """A table of the corpus."""

    name: str
    row_type: RowType
    changes: tuple[Change, ...]
    rowtime: int | None = None
    primary_key: tuple[int, ...] = ()

    @property
    def is_append_only(self) -> bool:
        """Whether rows are only inserted."""
        return all(kind is RowKind.INSERT for kind, _ in self.changes)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows after all changes."""
        return list(materialized(self.changes).elements())


def materialized(changes: Iterable[tuple[RowKind, Sequence[Any]]]) -> Counter[tuple[Any, ...]]:
    """The rows that are left of a changelog, and how often; a row that is not there cannot be taken back."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for kind, values in changes:
        row = tuple(values)
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            rows[row] += 1
        elif rows[row] <= 0:
            raise AssertionError(f"{kind}{list(row)} takes back a row that is not there")
        else:
            rows[row] -= 1
    return +rows


def _times(random_: random.Random, count: int, span_ms: int) -> list[int]:
    """Ascending but for what is out of order."""
    step = span_ms / count
    return [max(0, int(number * step) - random_.choice([0, 0, 0, 300, 900, DELAY_MS - 1])) for number in range(count)]


def _maybe(random_: random.Random, value: Any, share: float = 0.12) -> Any:
    return None if random_.random() < share else value


def _orders(count: int = 150) -> GeneratedTable:
    draw = random.Random("orders")
    rows = [
        (
            number,
            _maybe(draw, draw.randrange(8)),
            _maybe(draw, draw.choice(["a", "b", "B", "", "abc", "öl"])),
            _maybe(draw, draw.choice([draw.randrange(-50, 50), 2**40, -(2**33)])),
            _maybe(draw, Decimal(draw.randrange(-99999, 99999)).scaleb(-2)),
            _maybe(draw, draw.randrange(-80, 80) / 4),
            _maybe(draw, draw.random() < 0.5),
            (START_MS + at) * 1_000_000,
        )
        for number, at in enumerate(_times(draw, count, 60_000))
    ]
    types = [
        DataTypes.BIGINT(False),
        DataTypes.INT(),
        DataTypes.STRING(),
        DataTypes.BIGINT(),
        DataTypes.DECIMAL(10, 2),
        DataTypes.DOUBLE(),
        DataTypes.BOOLEAN(),
        _ROWTIME,
    ]
    row_type = RowType.of(["id", "k", "s", "n", "d", "f", "b", "ts"], types, nullable=False)
    return GeneratedTable("o", row_type, tuple((RowKind.INSERT, row) for row in rows), rowtime=7)


def _payments(count: int = 100) -> GeneratedTable:
    draw = random.Random("payments")
    rows = [
        (
            _maybe(draw, draw.randrange(160)),
            _maybe(draw, draw.randrange(10)),
            _maybe(draw, draw.randrange(100)),
            draw.choice(["card", "cash", None]),
            (START_MS + at) * 1_000_000,
        )
        for at in _times(draw, count, 60_000)
    ]
    types = [DataTypes.BIGINT(), DataTypes.INT(), DataTypes.BIGINT(), DataTypes.STRING(), _ROWTIME]
    row_type = RowType.of(["oid", "k", "amount", "way", "ts"], types, nullable=False)
    return GeneratedTable("p", row_type, tuple((RowKind.INSERT, row) for row in rows), rowtime=4)


def _customers(count: int = 90) -> GeneratedTable:
    draw = random.Random("customers")
    now: dict[int, tuple[Any, ...]] = {}
    changes: list[Change] = []
    for _ in range(count):
        key = draw.randrange(12)
        row = (key, _maybe(draw, draw.choice(["x", "y", "z"])), _maybe(draw, draw.randrange(20)))
        if key not in now:
            changes.append((RowKind.INSERT, row))
            now[key] = row
        elif draw.random() < 0.2:
            changes.append((RowKind.DELETE, now.pop(key)))
        else:
            changes += [(RowKind.UPDATE_BEFORE, now[key]), (RowKind.UPDATE_AFTER, row)]
            now[key] = row
    types = [DataTypes.INT(False), DataTypes.STRING(), DataTypes.BIGINT()]
    row_type = RowType.of(["k", "city", "points"], types, nullable=False)
    return GeneratedTable("c", row_type, tuple(changes), primary_key=(0,))


TABLES = {table.name: table for table in (_orders(), _payments(), _customers())}
