"""Text of typed values, as real Flink 2.3 on Java 17 prints them."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pytest

from firesteel.common import Encoder, Instant, Row, RowKind, Types
from firesteel.types.java_text import java_text

INT, STRING, DOUBLE, FLOAT = Types.INT(), Types.STRING(), Types.DOUBLE(), Types.FLOAT()


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (INT, 1, "1"),
        (INT, True, "1"),
        (INT, None, "null"),
        (INT, 2**31, "-2147483648"),
        (Types.BYTE(), 200, "-56"),
        (Types.SHORT(), -40000, "25536"),
        (Types.LONG(), 2**40, "1099511627776"),
        (Types.LONG(), -(2**63) - 1, "9223372036854775807"),
        (Types.BIG_INT(), 2**70, "1180591620717411303424"),
        (Types.BOOLEAN(), True, "true"),
        (Types.BOOLEAN(), False, "false"),
        (DOUBLE, 1.0, "1.0"),
        (DOUBLE, 1, "1.0"),
        (DOUBLE, 1e20, "1.0E20"),
        (DOUBLE, 0.1, "0.1"),
        (DOUBLE, 1 / 3, "0.3333333333333333"),
        (DOUBLE, 1e-5, "1.0E-5"),
        (DOUBLE, 12345678.9, "1.23456789E7"),
        (DOUBLE, 9999999.0, "9999999.0"),
        (DOUBLE, 1e7, "1.0E7"),
        (DOUBLE, 0.001, "0.001"),
        (DOUBLE, 9.999e-4, "9.999E-4"),
        (DOUBLE, 123456.0, "123456.0"),
        (DOUBLE, -0.0, "-0.0"),
        (DOUBLE, float("nan"), "NaN"),
        (DOUBLE, float("-inf"), "-Infinity"),
        (DOUBLE, 1.7976931348623157e308, "1.7976931348623157E308"),
        (FLOAT, 1 / 3, "0.33333334"),
        (FLOAT, 0.1, "0.1"),
        (FLOAT, 1e20, "1.0E20"),
        (FLOAT, 1e300, "Infinity"),
        (FLOAT, -1e300, "-Infinity"),
        (FLOAT, 12345678.9, "1.2345679E7"),
        (FLOAT, float("inf"), "Infinity"),
        (Types.BIG_DEC(), Decimal("1.50"), "1.50"),
        (Types.BIG_DEC(), Decimal("1E+5"), "1E+5"),
        (Types.SQL_DATE(), dt.date(2024, 1, 2), "2024-01-02"),
        (Types.SQL_TIME(), dt.time(1, 2, 3), "01:02:03"),
        (Types.SQL_TIMESTAMP(), dt.datetime.fromisoformat("2024-01-02T03:04:05.678"), "2024-01-02 03:04:05.678"),
        (Types.SQL_TIMESTAMP(), dt.datetime.fromisoformat("2024-01-02T03:04:05"), "2024-01-02 03:04:05.0"),
        (Types.INSTANT(), Instant(5, 6000), "1970-01-01T00:00:05Z"),
        (Types.INSTANT(), Instant(5, 120_000_000), "1970-01-01T00:00:05.120Z"),
        (Types.TUPLE([INT, STRING, DOUBLE, Types.BOOLEAN(), STRING]), (1, "x", 2.5, True, None), "(1,x,2.5,true,null)"),
        (Types.TUPLE([INT, Types.TUPLE([FLOAT])]), (1, (1e-5,)), "(1,(1.0E-5))"),
        (Types.ROW([INT, STRING]), Row(1, None), "+I[1, null]"),
        (Types.ROW([INT]), Row.of_kind(RowKind.DELETE, 1), "-D[1]"),
        (Types.ROW([INT]), (1,), "+I[1]"),
        (Types.LIST(INT), [1, 2], "[1, 2]"),
        (Types.LIST(DOUBLE), [], "[]"),
        (Types.MAP(STRING, DOUBLE), {"a": 1.0, "b": None}, "{a=1.0, b=null}"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"a\xff", "[97, -1]"),
        (Types.BASIC_ARRAY(STRING), ["x", "y"], "[x, y]"),
        (Types.TUPLE([INT, Types.PICKLED_BYTE_ARRAY()]), (1, {"a": 1.0}), "(1,{'a': 1.0})"),
    ],
)
def test_a_value_is_shown_as_flink_shows_it(type_info: Any, value: Any, text: str) -> None:
    to_text = java_text(type_info)
    assert to_text is not None
    assert to_text(value) == text


def test_others_are_shown_as_python_shows_them() -> None:
    assert java_text(None) is None
    assert java_text(Types.PICKLED_BYTE_ARRAY()) is None
    assert java_text(STRING) is None


def test_an_encoder_of_text_writes_it() -> None:
    to_text = java_text(Types.TUPLE([INT, DOUBLE]))
    assert to_text is not None
    encoder = Encoder.simple_string_encoder().with_text(to_text)
    file = io.BytesIO()
    encoder.encode((1, 1e20), file)
    encoder.encode_batch([(2, 0.5), (3, None)], file)
    assert file.getvalue() == b"(1,1.0E20)\n(2,0.5)\n(3,null)\n"
