"""CAST of columns has the results of CAST of rows, on values drawn at random and on those at the limits."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pytest

from firesteel.table.bound.nodes import Cast, InputRef
from firesteel.table.casts.vector import cast_vector
from firesteel.table.casts.vector_text import partial_cast_vector
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.types.internal import from_column, to_column
from tests.support.sql_expressions import logical_type, same

RANDOM = random.Random(7)


def integers(bits: int) -> list[Any]:
    half = 1 << (bits - 1)
    return [0, 1, -1, half - 1, -half, None, *(RANDOM.randrange(-half, half) for _ in range(200))]


DOUBLES = [
    *(0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 2147483647.5, -2147483649.0, 9.3e18, -9.3e18, 300.7, None),
    *(RANDOM.uniform(-1e6, 1e6) for _ in range(200)),
    *(RANDOM.uniform(-1e20, 1e20) for _ in range(50)),
]
DECIMALS = [None, *(Decimal(RANDOM.randrange(-(10**10), 10**10)).scaleb(-2) for _ in range(300))]
MILLIS = [None, *(RANDOM.randrange(-(10**14), 10**14) * 10**6 for _ in range(300)), 0, -(10**6), -86_400_000 * 10**6]
MICROS = [None, *(RANDOM.randrange(-(10**17), 10**17) * 10**3 for _ in range(300)), 0, -1000]
TEXTS = {
    "INT": ["1", "-17", "0", None, "2147483647"],
    "BIGINT": ["1", "-9223372036854775808", None],
    "TINYINT": ["127", "-128", None],
    "DOUBLE": ["1", "-1.5", "1e3", "0.1", "123456789.123456789", "5E-324", None],
    "FLOAT": ["1", "0.1", "3.4e38", None],
    "DATE": ["2020-02-29", "0001-01-01", "9999-12-31", None],
    "TIMESTAMP(0)": ["2020-02-29 10:20:30", None],
    "TIMESTAMP(3)": ["2020-02-29 10:20:30.1", "1969-12-31 23:59:59.999", "0001-01-01 00:00:00", None],
    "TIMESTAMP(6)": ["2020-02-29 10:20:30.123456", None],
    "BOOLEAN": ["true", "F", "yes", "0", None],
}
CASES = [
    *((f"{one}", f"{other}") for one in ("TINYINT", "INT", "BIGINT") for other in ("SMALLINT", "INT", "FLOAT")),
    *((one, other) for one in ("FLOAT", "DOUBLE") for other in ("TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN")),
    *(
        ("DECIMAL(10, 2)", other)
        for other in ("TINYINT", "INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DECIMAL(12, 4)", "DECIMAL(11, 1)")
    ),
    *(("TIMESTAMP(3)", other) for other in ("DATE", "TIMESTAMP(0)", "TIMESTAMP(6)", "STRING")),
    *(("TIMESTAMP(6)", other) for other in ("DATE", "TIMESTAMP(0)", "TIMESTAMP(3)", "STRING")),
    *(("BOOLEAN", other) for other in ("INT", "DOUBLE", "STRING")),
    ("DATE", "STRING"),
    ("DATE", "TIMESTAMP(3)"),
]


def values(type_: str) -> list[Any]:
    match type_:
        case "TINYINT":
            return integers(8)
        case "INT":
            return integers(32)
        case "BIGINT":
            return integers(64)
        case "FLOAT" | "DOUBLE":
            return DOUBLES
        case "DECIMAL(10, 2)":
            return DECIMALS
        case "TIMESTAMP(3)":
            return MILLIS
        case "TIMESTAMP(6)":
            return MICROS
        case "BOOLEAN":
            return [True, False, None]
    return [0, -1, 18321, -719162, 2932896, None]


def check(source: str, target: str, given: list[Any], sliced: bool) -> None:
    from_, to = logical_type(source), logical_type(target)
    cast = Cast(to, InputRef(from_, 0, "x"))
    column = to_column(given, from_)
    if sliced:
        column = column.slice(1)
    rows = from_column(column, from_)
    expected = [compile_row([cast])((value,))[0] for value in rows]
    (found,) = compile_vector([cast])([column], len(column))
    assert same(from_column(found, to), expected), f"{from_column(found, to)} instead of {expected}"


@pytest.mark.parametrize(("source", "target"), CASES)
def test_kernels_have_the_results_of_rows(source: str, target: str) -> None:
    from_, to = logical_type(source), logical_type(target)
    assert cast_vector(from_, to) is not None or partial_cast_vector(from_, to) is not None
    for sliced in (False, True):
        check(source, target, values(source), sliced)


@pytest.mark.parametrize("target", TEXTS)
def test_text_is_parsed_by_kernels(target: str) -> None:
    kernel = partial_cast_vector(logical_type("STRING"), logical_type(target))
    assert kernel is not None
    assert kernel(to_column(TEXTS[target], logical_type("STRING"))) is not None
    check("STRING", target, TEXTS[target], sliced=True)


def test_rare_text_is_left_to_the_rows() -> None:
    kernel = partial_cast_vector(logical_type("STRING"), logical_type("INT"))
    assert kernel is not None
    for text in (" 5", "+5", "0x10", "1.9", "2147483648"):
        assert kernel(to_column(["1", text], logical_type("STRING"))) is None
    check("STRING", "INT", ["1", " 5", "+5", "1.9", None], sliced=False)
