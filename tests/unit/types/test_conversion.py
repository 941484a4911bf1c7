"""Conversion to declared types: what PyFlink 2.3's coders give back of a value, or that they fail."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from firesteel.common import Instant, Row, RowKind, Types
from firesteel.common.typeinfo import TypeInformation
from firesteel.types.conversion import conversion_of

MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - as SQL has it
ZONED = MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
PAIR = Types.TUPLE([Types.INT(), Types.STRING()])
NAMED = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])

CONVERTED: list[tuple[TypeInformation, Any, Any]] = [
    *((kind, 2.7, 2) for kind in (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT())),
    (Types.INT(), -2.7, -2),
    (Types.INT(), True, 1),
    (Types.INT(), Decimal("3.9"), 3),
    (Types.LONG(), 2**31, 2**31),
    (Types.BOOLEAN(), 2, True),
    (Types.BOOLEAN(), 0, False),
    (Types.FLOAT(), 1.1, 1.100000023841858),
    (Types.FLOAT(), 1e39, math.inf),
    (Types.FLOAT(), -1e39, -math.inf),
    (Types.FLOAT(), Decimal("1.1"), 1.100000023841858),
    (Types.DOUBLE(), 1, 1.0),
    (Types.DOUBLE(), True, 1.0),
    (Types.BIG_DEC(), 1.5, Decimal("1.5")),
    (Types.BIG_DEC(), "2.5", Decimal("2.5")),
    (Types.BIG_DEC(), Decimal("1.10"), Decimal("1.10")),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"ab"), b"ab"),
    (Types.BASIC_ARRAY(Types.INT()), [1.9, None, True], [1, None, 1]),
    (Types.LIST(Types.FLOAT()), [0.1, 2], [0.10000000149011612, 2.0]),
    (Types.MAP(Types.STRING(), Types.FLOAT()), {"a": 0.1, "b": None}, {"a": 0.10000000149011612, "b": None}),
    (PAIR, (1, "a", 3), (1, "a")),
    (NAMED, Row(1, "a"), Row(a=1, b="a")),
    (NAMED, Row(b="x", a=1), Row(a=1, b="x")),
    (NAMED, Row(None, None), Row(a=None, b=None)),
    (Types.SQL_TIMESTAMP(), MOMENT, MOMENT),
    (Types.SQL_TIMESTAMP(), ZONED, MOMENT),
    (Types.SQL_TIME(), MOMENT.time(), MOMENT.time()),
    (Types.SQL_DATE(), MOMENT, dt.date(2020, 1, 2)),
    (Types.INSTANT(), Instant(1, 1999999), Instant(1, 1999999)),
    (Types.PICKLED_BYTE_ARRAY(), [1, {}], [1, {}]),
]
REFUSED: list[tuple[TypeInformation, Any]] = [
    (Types.BYTE(), 128),
    (Types.SHORT(), 32768),
    (Types.INT(), 2**31),
    (Types.LONG(), 2**63),
    (Types.INT(), None),
    (Types.INT(), "5"),
    (Types.BOOLEAN(), "x"),
    (Types.DOUBLE(), "1.5"),
    (Types.STRING(), 1),
    (Types.STRING(), b"x"),
    (PAIR, (None, "a")),
    (PAIR, (1,)),
    (PAIR, None),
    (NAMED, Row(c=1, d="x")),
    (Types.SQL_TIMESTAMP(), dt.date(2020, 1, 1)),
]


@pytest.mark.parametrize(("type_info", "value", "expected"), CONVERTED, ids=repr)
def test_a_value_becomes_one_of_its_type(type_info: TypeInformation, value: Any, expected: Any) -> None:
    conversion = conversion_of(type_info)
    if conversion is None:
        assert value == expected
        return
    converted = conversion.convert(value)
    assert (converted, type(converted)) == (expected, type(expected))
    # what has been converted needs no second conversion: the test of the loop, or the conversion, leaves it as it is
    assert conversion.convert_all()([value, converted]) == [expected, expected]


@pytest.mark.parametrize(("type_info", "value"), REFUSED, ids=repr)
def test_a_value_that_has_no_place_in_its_type_is_an_error(type_info: TypeInformation, value: Any) -> None:
    conversion = conversion_of(type_info)
    assert conversion is not None
    with pytest.raises((TypeError, ValueError, OverflowError, AttributeError)):
        conversion.convert(value)
    with pytest.raises((TypeError, ValueError, OverflowError, AttributeError)):
        conversion.convert_all()([value])


def test_integers_can_keep_their_lowest_bits() -> None:
    conversion = conversion_of(Types.ROW([Types.BYTE(), Types.INT()]), wraps=True)
    assert conversion is not None
    assert list(conversion.convert(Row(300, 2**31))) == [44, -(2**31)]


def test_a_row_keeps_its_kind() -> None:
    conversion = conversion_of(NAMED)
    assert conversion is not None
    assert conversion.convert(Row.of_kind(RowKind.DELETE, 1, "a")).get_row_kind() is RowKind.DELETE


def test_records_of_their_type_stay_the_same_objects() -> None:
    conversion = conversion_of(Types.TUPLE([Types.LONG(), Types.DOUBLE(), NAMED]))
    assert conversion is not None
    record = (1, 0.5, Row(a=1, b=None))
    assert conversion.convert_all()([record])[0] is record
