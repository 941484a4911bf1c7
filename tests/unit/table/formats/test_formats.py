"""Formats make of messages and values what Flink made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import FiresteelError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.session import Session
from firesteel.table.connector.format import find_format
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.connectors.row_text import row_texts
from firesteel.table.evaluation.row_codegen import evaluate_constant
from firesteel.types.logical import IntType, RowType
from tests.support.table_queries import context_of, plan_of

CASES = json.loads((Path(__file__).parent / "recorded.json").read_text())
DIFFERENCES = {
    # Flink stops reading an object when it has seen as many fields as there are columns
    ('{"a": 1, "a": 3, "n": 2}', "+I[3, null]"): "+I[3, 2]",
    # digits beyond the precision of a type are not kept
    ('{"a": "10:11:12.345", "n": 1}', "+I[10:11:12.345, 1]"): "+I[10:11:12, 1]",
    ('{"a": "2020-01-02 10:11:12.345678", "n": 1}', "+I[2020-01-02T10:11:12.345678, 1]", "TIMESTAMP(3)"): (
        "+I[2020-01-02T10:11:12.345, 1]"
    ),
    ('{"a": "2020-01-02T10:11:12.123456789", "n": 1}', "+I[2020-01-02T10:11:12.123456789, 1]", "TIMESTAMP(3)"): (
        "+I[2020-01-02T10:11:12.123, 1]"
    ),
    ('{"a": "2020-01-02T10:11:12.123456789", "n": 1}', "+I[2020-01-02T10:11:12.123456789, 1]", "TIMESTAMP(6)"): (
        "+I[2020-01-02T10:11:12.123456, 1]"
    ),
}


def type_of(text: str) -> RowType:
    plan = plan_of(f"SELECT CAST(NULL AS {text}) AS a", {})
    return RowType.of(["a", "n"], [plan.row_type.fields[0].type, IntType()], nullable=False)


def format_of(row_type: RowType, options: dict[str, str]) -> Any:
    context = context_of(row_type, options)
    found = find_format(context)
    assert found is not None
    factory, own, _ = found
    return factory, context, own


def expected(case: dict[str, Any], message: str, result: str) -> str:
    return DIFFERENCES.get((message, result, case["type"]), DIFFERENCES.get((message, result), result))


def decoded(decoder: Any, row_type: RowType, messages: list[bytes]) -> list[str]:
    made = decoder.decode(messages)
    return row_texts(ColumnBatch(made.data, made.kinds), row_type)


@pytest.mark.parametrize("case", [case for case in CASES if case["do"] == "decode"], ids=lambda case: str(case["type"]))
def test_decoding(case):
    row_type = type_of(case["type"])
    factory, context, options = format_of(row_type, case["options"])
    decoder = factory.create_decoding_format(context, options).create_decoder(row_type)
    results = []
    for message in case["inputs"]:
        try:
            rows = decoded(decoder, row_type, [message.encode()])
            results.append(rows[0] if rows else "SKIPPED")
        except FiresteelError:
            results.append("ERROR")
    wanted = [expected(case, *pair) for pair in zip(case["inputs"], case["results"], strict=True)]
    assert dict(zip(case["inputs"], results, strict=True)) == dict(zip(case["inputs"], wanted, strict=True))
    # the good ones all together
    good = [message.encode() for message, result in zip(case["inputs"], wanted, strict=True) if result != "ERROR"]
    assert decoded(decoder, row_type, good * 20) == [text for text in wanted if text not in ("ERROR", "SKIPPED")] * 20


@pytest.mark.parametrize("case", [case for case in CASES if case["do"] == "encode"], ids=lambda case: str(case["type"]))
def test_encoding(case):
    row_type = type_of(case["type"])
    factory, context, options = format_of(row_type, case["options"])
    encoder = factory.create_encoding_format(context, options).create_encoder(row_type)
    results = []
    for value in case["inputs"]:
        plan = plan_of(f"SELECT CAST({value} AS {case['type']}) AS a", {})
        constant = evaluate_constant(plan.expressions[0], Session())
        try:
            (message,) = encoder.encode(batch_of([(constant, 1)], row_type))
            results.append(message.decode())
        except FiresteelError:
            results.append("ERROR")
    assert results == case["results"]


def test_columns_that_are_read_alone():
    row_type = type_of("INT")
    some = RowType([row_type.fields[1]], nullable=False)
    factory, context, options = format_of(row_type, {"format": "csv"})
    decoder = factory.create_decoding_format(context, options).create_decoder(some)
    assert decoded(decoder, some, [b"x,1", b"2,5"]) == ["+I[1]", "+I[5]"]
    factory, context, options = format_of(row_type, {"format": "json"})
    decoder = factory.create_decoding_format(context, options).create_decoder(some)
    assert decoded(decoder, some, [b'{"a": [1], "n": 1}', b'{"n": 5}']) == ["+I[1]", "+I[5]"]
