"""Formats of changes: rows of all kinds from messages, and messages of rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from firesteel.common.errors import FiresteelError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.format import find_format
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.connectors.row_text import row_texts
from firesteel.types.logical import RowType
from tests.support.table_queries import context_of

TYPE = RowType.of(["id", "name"], [DataTypes.BIGINT(), DataTypes.STRING()], nullable=False)
OLD, NEW = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
MESSAGES = {
    "debezium-json": [
        {"before": None, "after": OLD, "op": "c", "ts_ms": 5},
        {"before": OLD, "after": NEW, "op": "u"},
        {"before": NEW, "after": None, "op": "d"},
        {"after": OLD, "op": "r"},
    ],
    "canal-json": [
        {"data": [OLD], "type": "INSERT", "database": "d", "table": "t"},
        {"data": [NEW], "old": [{"name": "a"}], "type": "UPDATE", "database": "d", "table": "t"},
        {"data": [NEW], "type": "DELETE", "database": "d", "table": "t"},
        {"data": None, "type": "CREATE", "database": "d", "table": "t"},
        {"data": [OLD], "type": "INSERT", "database": "d", "table": "t"},
    ],
    "maxwell-json": [
        {"data": OLD, "type": "insert"},
        {"data": NEW, "old": {"name": "a"}, "type": "update"},
        {"data": NEW, "type": "delete"},
        {"data": OLD, "type": "insert"},
    ],
}
ROWS = ["+I[1, a]", "-U[1, a]", "+U[1, b]", "-D[1, b]", "+I[1, a]"]


def created(name, kind="decoding", **options):
    prefixed = {f"{name}.{key.replace('_', '-')}": value for key, value in options.items()}
    context = context_of(TYPE, {"format": name, **prefixed})
    factory, own, _ = find_format(context)
    return getattr(factory, f"create_{kind}_format")(context, own)


def decoded(name, messages, **options):
    decoder = created(name, **options).create_decoder(TYPE)
    made = decoder.decode([None if one is None else json.dumps(one).encode() for one in messages])
    return row_texts(ColumnBatch(made.data, made.kinds), TYPE), made.messages.tolist()


@pytest.mark.parametrize("name", MESSAGES)
def test_changes(name):
    rows, messages = decoded(name, [*MESSAGES[name], None])
    assert rows == ROWS
    assert messages[:4] == [0, 1, 1, 2]


@pytest.mark.parametrize("name", MESSAGES)
def test_written_changes_are_read_again(name):
    kinds = np.array([0, 1, 2, 3], np.int8)
    batch = batch_of([(1, "a"), (1, "a"), (1, "b"), (1, "b")], TYPE)
    encoder = created(name, "encoding").create_encoder(TYPE)
    messages = encoder.encode(ColumnBatch(batch.data, kinds))
    rows, _ = decoded(name, [json.loads(message) for message in messages])
    # an update is written as a deletion and an insertion, as Flink does
    assert rows == ["+I[1, a]", "-D[1, a]", "+I[1, b]", "-D[1, b]"]


def test_text_as_flink_writes_it():
    batch = batch_of([(1, "a")], TYPE)
    texts = {name: created(name, "encoding").create_encoder(TYPE).encode(batch)[0].decode() for name in MESSAGES}
    assert texts == {
        "debezium-json": '{"before":null,"after":{"id":1,"name":"a"},"op":"c"}',
        "canal-json": '{"data":[{"id":1,"name":"a"}],"type":"INSERT"}',
        "maxwell-json": '{"data":{"id":1,"name":"a"},"type":"insert"}',
    }


def test_messages_with_a_schema():
    message = {"schema": {}, "payload": {"before": None, "after": OLD, "op": "c"}}
    assert decoded("debezium-json", [message], schema_include="true")[0] == ["+I[1, a]"]


def test_tables_that_are_left_out():
    context = context_of(TYPE, {"format": "canal-json", "canal-json.table.include": "t[0-9]"})
    factory, own, _ = find_format(context)
    decoder = factory.create_decoding_format(context, own).create_decoder(TYPE)
    messages = [json.dumps({**MESSAGES["canal-json"][0], "table": table}).encode() for table in ("t", "t1")]
    assert decoder.decode(messages).data.num_rows == 1


@pytest.mark.parametrize(
    ("name", "message", "reason"),
    [
        ("debezium-json", {"before": None, "after": NEW, "op": "u"}, "REPLICA IDENTITY to FULL"),
        ("debezium-json", {"after": NEW, "op": "x"}, 'Unknown "op" value "x"'),
        ("canal-json", {"data": [OLD], "type": "X"}, 'Unknown "type" value "X"'),
        ("maxwell-json", [1], "Corrupt"),
    ],
)
def test_bad_messages(name, message, reason):
    with pytest.raises(FiresteelError, match=reason):
        decoded(name, [message])
    assert decoded(name, [message], ignore_parse_errors="true")[0] == []


def test_wrong_options():
    with pytest.raises(ValidationError, match=r"doesn.t support .debezium-json\.schema-include."):
        created("debezium-json", "encoding", schema_include="true")
