from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pytest

from firesteel.common import Instant, Row, RowKind, Types
from firesteel.common.typeinfo import (
    BasicType,
    ExternalTypeInfo,
    LocalTimeTypeInfo,
    RowTypeInfo,
    TypeInformation,
)

ALL = [
    (Types.STRING(), "String"),
    (Types.BYTE(), "Byte"),
    (Types.BOOLEAN(), "Boolean"),
    (Types.SHORT(), "Short"),
    (Types.INT(), "Integer"),
    (Types.LONG(), "Long"),
    (Types.FLOAT(), "Float"),
    (Types.DOUBLE(), "Double"),
    (Types.CHAR(), "Char"),
    (Types.BIG_INT(), "BigInteger"),
    (Types.BIG_DEC(), "BigDecimal"),
    (Types.INSTANT(), "Instant"),
    (Types.SQL_DATE(), "DateTypeInfo"),
    (Types.SQL_TIME(), "TimeTypeInfo"),
    (Types.SQL_TIMESTAMP(), "TimestampTypeInfo"),
    (Types.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo"),
    (Types.ROW([Types.INT(), Types.STRING()]), "RowTypeInfo(Integer, String)"),
    (Types.ROW_NAMED(["a"], [Types.INT()]), "RowTypeInfo(a: Integer)"),
    (Types.TUPLE([Types.INT(), Types.LONG()]), "TupleTypeInfo(Integer, Long)"),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), "PrimitiveArrayTypeInfo<Byte>"),
    (Types.BASIC_ARRAY(Types.STRING()), "BasicArrayTypeInfo<String>"),
    (Types.OBJECT_ARRAY(Types.INSTANT()), "ObjectArrayTypeInfo<Instant>"),
    (Types.MAP(Types.INT(), Types.LIST(Types.BIG_DEC())), "MapTypeInfo<Integer, ListTypeInfo<BigDecimal>>"),
    (Types.LIST(Types.INT()), "ListTypeInfo<Integer>"),
    (LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE), "LocalTimeTypeInfo<LOCAL_DATE>"),
    (ExternalTypeInfo(Types.INT()), "ExternalTypeInfo<Integer>"),
]


@pytest.mark.parametrize(("type_info", "printed"), ALL, ids=[printed for _, printed in ALL])
def test_every_type_prints_equals_hashes_and_pickles(type_info, printed):
    assert repr(type_info) == str(type_info) == printed
    again = pickle.loads(pickle.dumps(type_info))
    assert again == type_info
    assert hash(again) == hash(type_info)
    assert isinstance(type_info, TypeInformation)
    assert sum(type_info == other for other, _ in ALL) == 1
    assert type_info != printed


def test_rows_are_equal_by_field_types_alone():
    assert Types.ROW([Types.INT()]) == Types.ROW_NAMED(["a"], [Types.INT()])
    assert Types.ROW([Types.INT()]) != Types.TUPLE([Types.INT()])


def test_field_names():
    assert Types.ROW([Types.INT(), Types.INT()]).get_field_names() == ["f0", "f1"]
    named = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    assert named.get_field_names() == ["a", "b"]
    assert named.get_field_index("b") == 1
    assert named.get_field_types() == [Types.INT(), Types.STRING()]
    with pytest.raises(ValueError):
        named.get_field_index("c")


def test_row_types_refuse_names_that_do_not_fit():
    with pytest.raises(ValueError):
        RowTypeInfo([Types.INT()], ["a", "b"])
    with pytest.raises(ValueError):
        RowTypeInfo([Types.INT(), Types.INT()], ["a", "a"])


def test_arrays_refuse_other_elements():
    with pytest.raises(TypeError):
        Types.PRIMITIVE_ARRAY(Types.STRING())
    with pytest.raises(TypeError):
        Types.BASIC_ARRAY(Types.INSTANT())


class Point:
    def __init__(self, a, b):
        self.a, self.b = a, b


@pytest.mark.parametrize(
    "value",
    [
        {"b": dt.date(1970, 1, 3), "a": 1},
        Row(b=dt.date(1970, 1, 3), a=1),
        (1, dt.date(1970, 1, 3)),
        Point(1, dt.date(1970, 1, 3)),
    ],
    ids=["dict", "row", "tuple", "object"],
)
def test_row_to_internal_type(value):
    row_type = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.SQL_DATE()])
    assert row_type.need_conversion()
    assert row_type.to_internal_type(value) == (0, 1, 2)


def test_row_kind_is_kept_and_what_is_no_row_is_refused():
    row_type = Types.ROW([Types.INT()])
    assert row_type.to_internal_type(Row.of_kind(RowKind.DELETE, 7)) == (3, 7)
    assert row_type.to_internal_type(None) is None
    with pytest.raises(ValueError):
        row_type.to_internal_type(7)
    with pytest.raises(ValueError):
        Types.TUPLE([Types.INT()]).to_internal_type(7)


def test_rows_and_tuples_from_internal_type():
    for type_info in (Types.ROW([Types.SQL_DATE()]), Types.TUPLE([Types.SQL_DATE()])):
        assert type_info.from_internal_type(iter([2])) == (dt.date(1970, 1, 3),)
        assert type_info.from_internal_type((2,)) == (2,)
        assert type_info.from_internal_type(None) is None


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (Types.SQL_DATE(), dt.date(2024, 2, 29)),
        (Types.SQL_DATE(), dt.date(1969, 12, 31)),
        (Types.SQL_TIME(), dt.time(23, 59, 59, 999999)),
        (Types.SQL_TIMESTAMP(), dt.datetime(2024, 2, 29, 1, 2, 3, 4)),  # noqa: DTZ001 - local time is meant
        (Types.INSTANT(), Instant.of_epoch_milli(-1)),
        (Types.INT(), 5),
    ],
)
def test_conversions_round_trip(type_info, value):
    assert type_info.from_internal_type(type_info.to_internal_type(value)) == value
    assert type_info.to_internal_type(None) is None
    assert type_info.from_internal_type(None) is None


def test_times_with_a_zone_are_taken_in_utc():
    zone = dt.timezone(dt.timedelta(hours=2))
    assert Types.SQL_TIME().to_internal_type(dt.time(3, 0, tzinfo=zone)) == 3600 * 10**6
    stamp = dt.datetime(1970, 1, 1, 2, 0, 1, 5, tzinfo=zone)
    assert Types.SQL_TIMESTAMP().to_internal_type(stamp) == 10**6 + 5


FITS = [
    (Types.STRING(), ["", "x", None]),
    (Types.BYTE(), [-128, 127]),
    (Types.SHORT(), [-32768, 32767]),
    (Types.INT(), [-(1 << 31), (1 << 31) - 1, True]),
    (Types.LONG(), [-(1 << 63), (1 << 63) - 1]),
    (Types.BOOLEAN(), [True, False]),
    (Types.DOUBLE(), [1, 1.5, float("nan")]),
    (Types.CHAR(), ["x"]),
    (Types.BIG_INT(), [1 << 100, None]),
    (Types.BIG_DEC(), [Decimal("1.5"), None]),
    (Types.INSTANT(), [Instant(0, 0), None]),
    (Types.SQL_DATE(), [dt.date(2024, 1, 1), None]),
    (Types.PICKLED_BYTE_ARRAY(), [object(), None]),
    (Types.ROW([Types.INT(), Types.STRING()]), [Row(1, "a"), (1, None), [1, "a"], {"f0": 1, "f1": "a"}]),
    (Types.ROW_NAMED(["a"], [Types.INT()]), [Row(a=1), {"a": 1}]),
    (Types.TUPLE([Types.INT(), Types.INT()]), [(1, 2), Row(1, 2)]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"ab", [1, 2], bytearray(b"a")]),
    (Types.OBJECT_ARRAY(Types.STRING()), [["a", None]]),
    (Types.LIST(Types.INT()), [[], [1, 2]]),
    (Types.MAP(Types.STRING(), Types.INT()), [{}, {"a": 1}]),
]


@pytest.mark.parametrize(("type_info", "value"), [(t, v) for t, values in FITS for v in values])  # type: ignore[attr-defined]
def test_values_that_fit(type_info, value):
    assert type_info.validate(value) is None


MISFITS = [
    (Types.STRING(), [1, b"x"]),
    (Types.BYTE(), [128, -129]),
    (Types.INT(), ["1", 1.0, 1 << 31, -(1 << 31) - 1, None]),
    (Types.LONG(), [1 << 63]),
    (Types.BOOLEAN(), [1, "true", None]),
    (Types.DOUBLE(), ["1.5", None]),
    (Types.CHAR(), ["", "xy"]),
    (Types.BIG_DEC(), [1.5]),
    (Types.INSTANT(), [0]),
    (Types.SQL_DATE(), ["2024-01-01"]),
    (Types.SQL_TIMESTAMP(), [dt.date(2024, 1, 1)]),
    (Types.ROW([Types.INT()]), [1, (1, 2), ("a",), None]),
    (Types.ROW_NAMED(["a"], [Types.INT()]), [Row(b=1), {"a": "x"}]),
    (Types.TUPLE([Types.INT(), Types.INT()]), [(1,), (1, "a"), {1, 2}, "ab"]),
    (Types.PRIMITIVE_ARRAY(Types.INT()), ["ab", b"ab", 1, ["a"], None]),
    (Types.LIST(Types.INT()), ["ab", ["a"], {1: 2}]),
    (Types.MAP(Types.STRING(), Types.INT()), [[], {1: 1}, {"a": "b"}]),
]


@pytest.mark.parametrize(("type_info", "value"), [(t, v) for t, values in MISFITS for v in values])  # type: ignore[attr-defined]
def test_values_that_do_not_fit(type_info, value):
    problem = type_info.validate(value)
    assert problem is not None
    assert problem.endswith(".")


def test_a_problem_names_place_expectation_and_value():
    row_type = Types.ROW_NAMED(["id", "tags"], [Types.INT(), Types.LIST(Types.STRING())])
    assert row_type.validate((1, ["a", 5])) == "Field tags: Element 1: String expects a str, got int 5."
    assert len(Types.INT().validate("x" * 10_000)) < 200


def test_basic_types_have_flinks_names():
    assert {basic.name for basic in BasicType} >= {"STRING", "BIG_DEC", "INSTANT"}
