"""Values of every type through the sink, in both forms that COPY has."""

from __future__ import annotations

import datetime as dt
import enum
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

from firesteel.common import Types
from firesteel.common.errors import RecordSerializationError
from firesteel.common.typeinfo import ListTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect
from firesteel.connectors.postgres.sink.copy_values import BINARY_TYPES
from firesteel.connectors.postgres.sink.row_conversion import CopyFormat
from firesteel.connectors.postgres.statements import columns_of
from firesteel.connectors.postgres.table_description import need_table
from firesteel.testing.conformance import RoundTripConformance
from firesteel.testing.conformance.sample_values import BYTES, SCALAR_TYPES
from firesteel.types.python import to_single

COLUMN_TYPES = {
    Types.STRING(): "text",
    Types.CHAR(): "varchar",
    Types.BOOLEAN(): "boolean",
    Types.BYTE(): "smallint",
    Types.SHORT(): "smallint",
    Types.INT(): "integer",
    Types.LONG(): "bigint",
    Types.FLOAT(): "real",
    Types.DOUBLE(): "double precision",
    Types.BIG_DEC(): "numeric",
    Types.SQL_DATE(): "date",
    Types.SQL_TIME(): "time",
    Types.SQL_TIMESTAMP(): "timestamp",
    BYTES: "bytea",
}


class Copied:
    """A table of numbered values, written as the sinks write their batches."""

    def __init__(self, connection: Any, column: str) -> None:
        self.connection = connection
        self.connection.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t (nr int, value {column})")
        table = need_table(connection, ("t",), "server")
        self._columns = table.select(None)
        self._target = columns_of(("t",), ["nr", "value"])

    def write(self, values: Sequence[Any], *, as_text: bool) -> None:
        """Instead of what is there; a number that is text has text sent."""
        self.connection.execute("DELETE FROM t")
        form = CopyFormat(self._columns)
        rows = [(str(number) if as_text else number, value) for number, value in enumerate(values)]
        form.write(self.connection, self._target, rows)
        assert not (as_text and form._is_binary)

    def read(self, selection: str = "value") -> list[Any]:
        return [row[0] for row in self.connection.execute(f"SELECT {selection} FROM t ORDER BY nr").fetchall()]


@pytest.fixture
def connection(tables: Any) -> Any:
    with connect(PostgresConnectionOptions(tables.url), name="test") as connection:
        connection.execute("SET client_min_messages = warning; CREATE DOMAIN moment AS timestamp")
        yield connection


class BothForms(RoundTripConformance):
    types = tuple(each for each in SCALAR_TYPES if each in COLUMN_TYPES)
    as_text = False
    seeds = range(2)

    @pytest.fixture(autouse=True)
    def _connection(self, connection: Any) -> None:
        self.connection = connection
        self.copied: tuple[str, Copied] | None = None

    def nested_types(self) -> Sequence[TypeInformation]:
        """Arrays; those of two dimensions must be rectangles."""
        return [*map(Types.LIST, self.types)]

    def may_refuse(self, type_info: Any, value: Any) -> bool:
        if isinstance(type_info, ListTypeInfo):
            return any(isinstance(item, str) and "\0" in item for item in value)
        return isinstance(value, str) and "\0" in value

    def round_trip(self, row_type: Any, rows: Any) -> Any:
        _, value_type = row_type.get_field_types()
        is_list = isinstance(value_type, ListTypeInfo)
        part = value_type.get_element_type() if is_list else value_type
        column = COLUMN_TYPES[part] + ("[]" if is_list else "")
        if self.copied is None or self.copied[0] != column:
            self.copied = column, Copied(self.connection, column)
        copied = self.copied[1]
        copied.write([row["value"] for row in rows], as_text=self.as_text)
        found = copied.read()
        if part == Types.FLOAT():
            # the server writes as few digits as tell a number of 32 bits from all others
            found = list(map(as_singles, found))
        return [Row(nr=number, value=value) for number, value in enumerate(found)]


class TestBinary(BothForms):
    pass


class TestText(BothForms):
    as_text = True


def as_singles(value: Any) -> Any:
    if isinstance(value, list):
        return [as_singles(item) for item in value]
    return value if value is None or not math.isfinite(value) else to_single(value)


class Color(enum.IntEnum):
    RED = 1


class Word(str, enum.Enum):
    YES = "yes"


class Whole:
    def __index__(self) -> int:
        return 7


NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=5)))
LOCAL = NOON.replace(tzinfo=None)
UTC_NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)

NUMBERS = [
    *(True, False, 0, 1, 7, -1, 2**15, 2**31, 2**63, 2**70, 10**400, Color.RED, Whole(), Fraction(1, 3), "5", "x", ""),
    *(1.0, 1.5, -0.0, 0.1, 1e39, 1e300, 1e-60, math.inf, math.nan, Decimal("0.1"), Decimal("1e400"), Decimal("1e-400")),
    *(Decimal("NaN"), Decimal("Infinity"), Decimal(5), Decimal("5.0"), 16777217, 0.1 + 2**-30, b"1", [], None),
    # half way between two numbers of 32 bits, and its neighbours
    *(1.00000005960464477539, 1.0000000596046449, 16777217.0, Decimal("1.00000005960464477540")),
]
MOMENTS = [
    *(NOON, LOCAL, UTC_NOON, LOCAL.date(), LOCAL.time(), NOON.timetz(), "2024-01-01", "12:00"),
    *("2024-01-01T12:00+05:00", "infinity", 5, None, dt.datetime.fromisoformat("9999-12-31T23:59:59.999999")),
    dt.date.min,
]
OTHERS = [
    *("", "a", "t", "true", "1", "\\N", "NULL", "{}", "{1,2}", "null", '"a"', Word.YES, b"a", b"\\x41", "\\x41"),
    *(bytearray(b"b"), memoryview(b"c"), uuid.UUID(int=1), str(uuid.UUID(int=1)), {"a": 1}, [1, "a"], (1, 2), {1, 2}),
    *(object(), 0, 1, True, False, None, Json({"a": 1}), Jsonb([None]), {"a": Decimal(1)}, {}, ["a", None]),
    *([[1, 2], [3, 4]], [[1], {"a": 1}], ["", "{"]),
]
LISTS = [
    *([], [None], [True, 2], [1, Decimal("1.5")], [1, 2.5], ["1", 2], [NOON], [NOON, None, LOCAL], (1, 2), ()),
    *([(1, 2), (3, 4)], [[1, 2], [3]], [[]], [{"a": 1}, None], [[{"a": 1}], [None]], [Json(1), 2], ["a", 1]),
    *([b"a", b"b"], "{1,2}", [1e39], [1e-60], [2**70], [LOCAL.date(), NOON], [Whole()], [UTC_NOON, NOON, "2024-01-01"]),
    ["a,b", 'c"d', "\\", "NULL", " ", ""],
]
CASES = {
    **dict.fromkeys(("smallint", "integer", "bigint", "numeric", "numeric(6,2)", "real", "double precision"), NUMBERS),
    **{name: [*NUMBERS[::4], *OTHERS] for name in ("boolean", "text", "varchar(3)", "bytea", "uuid", "json", "jsonb")},
    **dict.fromkeys(("date", "timestamp", "timestamp(3)", "timestamptz", "time"), MOMENTS),
    **{f"{name}[]": [*LISTS, *OTHERS[::4]] for name in sorted(BINARY_TYPES)},
    "moment": [NOON, LOCAL, None, "2024-01-01"],
    "moment[]": [[NOON, LOCAL], [[NOON]], None],
}


@pytest.mark.parametrize("column", CASES)
def test_what_is_written_does_not_depend_on_the_form(connection, column):
    copied, accepted = Copied(connection, column), []
    for value in CASES[column]:
        results = []
        for as_text in (False, True):
            try:
                copied.write([value], as_text=as_text)
                results.append(copied.read("value::text"))
            except (psycopg.Error, RecordSerializationError):
                results.append(None)
        assert results[0] == results[1], f"{value!r}: binary {results[0]}, text {results[1]}"
        if results[0] is not None:
            accepted.append((value, results[0][0]))
    # beside all others that are accepted
    assert accepted
    copied.write([value for value, _ in accepted], as_text=False)
    assert copied.read("value::text") == [text for _, text in accepted]


@pytest.mark.parametrize("as_text", [False, True], ids=["binary", "text"])
def test_moments_with_a_zone_are_not_moved(connection, as_text):
    at_seven = LOCAL.replace(hour=7)
    for column, value, expected in [
        ("timestamp", NOON, at_seven),
        ("timestamp[]", [NOON, None, LOCAL], [at_seven, None, LOCAL]),
        ("timestamp[]", [[NOON], [LOCAL]], [[at_seven], [LOCAL]]),
        ("moment", NOON, at_seven),
        ("moment[]", [NOON], ["2024-01-01 07:00:00"]),
        ("timestamptz", NOON, NOON),
        ("timestamptz", LOCAL, UTC_NOON),
        ("timestamptz[]", [NOON, LOCAL], [NOON, UTC_NOON]),
        ("time", NOON.timetz(), dt.time(7)),
        ("time[]", [NOON.timetz(), LOCAL.time()], [dt.time(7), dt.time(12)]),
    ]:
        copied = Copied(connection, column)
        copied.write([value], as_text=as_text)
        assert copied.read("value::text[]" if column == "moment[]" else "value") == [expected], column
