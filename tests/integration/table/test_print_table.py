"""The connector ``print`` writes rows as Flink's Row has them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from firesteel.common.types import RowKind
from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.types.logical import RowType
from tests.support.table_queries import sink_of, write_rows

TYPE = RowType.of(
    ["i", "s", "t", "d", "n", "r", "a", "m", "b"],
    [
        DataTypes.INT(),
        DataTypes.STRING(),
        DataTypes.TIMESTAMP(3),
        DataTypes.DOUBLE(),
        DataTypes.DECIMAL(10, 2),
        DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())]),
        DataTypes.ARRAY(DataTypes.INT()),
        DataTypes.MAP(DataTypes.STRING(), DataTypes.DATE()),
        DataTypes.BYTES(),
    ],
    nullable=False,
)
ROWS = [
    (1, None, 1_577_836_800_000_000_000, 1e20, Decimal("1.50"), (1, "b"), [1, None], {"k": 0}, b"\xff\x00"),
    (2, "x", 1_577_836_812_300_000_000, 0.5, None, None, [], {}, None),
]
LINES = [
    "+I[1, null, 2020-01-01T00:00, 1.0E20, 1.50, +I[1, b], [1, null], {k=1970-01-01}, [-1, 0]]",
    "-D[2, x, 2020-01-01T00:00:12.300, 0.5, null, null, [], {}, null]",
]


@pytest.mark.parametrize(("options", "prefix"), [({}, ""), ({"print-identifier": "id"}, "id> ")])
def test_rows(options, prefix, capfd):
    sink = sink_of(TYPE, {"connector": "print", **options})
    write_rows(sink, TYPE, ROWS, [RowKind.INSERT, RowKind.DELETE])
    assert capfd.readouterr().out.splitlines() == [prefix + line for line in LINES]


def test_standard_error_and_subtasks(capfd):
    options = {"connector": "print", "standard-error": "true", "sink.parallelism": "2"}
    write_rows(sink_of(TYPE, options), TYPE, ROWS[:1])
    (line,) = capfd.readouterr().err.splitlines()
    assert line in (f"1> {LINES[0]}", f"2> {LINES[0]}")


def test_wrong_options():
    with pytest.raises(ValidationError, match="Could not parse value 'maybe' for key 'standard-error'"):
        sink_of(TYPE, {"connector": "print", "standard-error": "maybe"})


def test_blackhole():
    write_rows(sink_of(TYPE, {"connector": "blackhole", "sink.parallelism": "2"}), TYPE, ROWS)
    with pytest.raises(ValidationError, match="Could not parse value 'x' for key"):
        sink_of(TYPE, {"connector": "blackhole", "sink.parallelism": "x"})
