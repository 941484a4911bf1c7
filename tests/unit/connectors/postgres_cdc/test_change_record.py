"""What becomes of a change in the stream."""

from __future__ import annotations

import datetime
import json
import pickle
import uuid
from decimal import Decimal

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.types import Row, RowKind
from firesteel.datastream.connectors.postgres import (
    ChangeRecord,
    EnvelopeDeserializationSchema,
    JsonDebeziumDeserializationSchema,
    RowDebeziumDeserializationSchema,
)


def record(op, before=None, after=None):
    return ChangeRecord("db", "public", "t", ("id", "name"), op, before, after, 5000, 0x1_0000_00AB, 77)


def deserialize(schema, *records):
    out = []
    for each in records:
        pickle.loads(pickle.dumps(schema)).deserialize(each, out)
    return out


def test_rows_have_the_kind_of_the_change():
    rows = deserialize(
        RowDebeziumDeserializationSchema(),
        record("r", None, (1, "a")),
        record("c", None, (2, "b")),
        record("u", (2, "b"), (2, "c")),
        record("u", None, (2, "d")),
        record("d", (2, "d"), None),
    )
    assert rows == [
        Row(id=1, name="a"),
        Row(id=2, name="b"),
        Row.of_kind(RowKind.UPDATE_BEFORE, id=2, name="b"),
        Row.of_kind(RowKind.UPDATE_AFTER, id=2, name="c"),
        Row.of_kind(RowKind.UPDATE_AFTER, id=2, name="d"),
        Row.of_kind(RowKind.DELETE, id=2, name="d"),
    ]


def test_rows_read_at_once_are_the_same():
    for schema in (
        RowDebeziumDeserializationSchema(),
        RowDebeziumDeserializationSchema("op_ts", "table_name"),
        EnvelopeDeserializationSchema(),
    ):
        rows = [(1, "a"), (2, None)]
        single = deserialize(schema, *[ChangeRecord("db", "s", "t", ("id", "n"), "r", None, row, 5) for row in rows])
        assert schema.deserialize_rows(ChangeRecord("db", "s", "t", ("id", "n"), "r", None, None, 5), rows) == single


def test_metadata_is_appended():
    schema = RowDebeziumDeserializationSchema(*RowDebeziumDeserializationSchema.METADATA)
    (row,) = deserialize(schema, record("c", None, (1, "a")))
    assert tuple(row) == (1, "a", "t", "public", "db", 5000, "+I")
    with pytest.raises(InvalidProgramError, match="no metadata column 'lsn'"):
        RowDebeziumDeserializationSchema("lsn")


def test_the_envelope():
    assert deserialize(EnvelopeDeserializationSchema(), record("u", (1, "a"), (1, "b"))) == [
        {
            "before": {"id": 1, "name": "a"},
            "after": {"id": 1, "name": "b"},
            "op": "u",
            "ts_ms": 5000,
            "source": {
                "db": "db",
                "schema": "public",
                "table": "t",
                "lsn": "1/AB",
                "txid": 77,
                "ts_ms": 5000,
                "snapshot": False,
            },
        }
    ]


def test_the_envelope_as_json_has_all_values():
    values = (
        Decimal("1.50"),
        b"\x00\xff",
        datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
        datetime.timedelta(minutes=1),
        uuid.UUID(int=1),
        float("nan"),
        [1.5, float("inf")],
        {"a": 1},
    )
    columns = tuple("abcdefgh")
    (text,) = deserialize(
        JsonDebeziumDeserializationSchema(), ChangeRecord("db", "s", "t", columns, "c", None, values, 0)
    )
    assert list(json.loads(text, parse_constant=pytest.fail)["after"].values()) == [
        "1.50",
        "AP8=",
        "2024-01-02T03:04:05+00:00",
        60.0,
        "00000000-0000-0000-0000-000000000001",
        "nan",
        [1.5, "inf"],
        {"a": 1},
    ]
