"""The format ``avro``: the bytes of Avro's specification, for the schema that Flink derives."""

from __future__ import annotations

from decimal import Decimal

import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.format import find_format
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.connectors.row_text import row_texts
from firesteel.types.logical import RowType
from tests.support.table_queries import context_of

ROW = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING(False))])
TYPE = RowType.of(
    ["id", "name", "price", "at", "day", "tags", "counts", "part"],
    [
        DataTypes.BIGINT(False),
        DataTypes.STRING(),
        DataTypes.DECIMAL(10, 2),
        DataTypes.TIMESTAMP(3),
        DataTypes.DATE(),
        DataTypes.ARRAY(DataTypes.INT()),
        DataTypes.MAP(DataTypes.STRING(), DataTypes.BIGINT()),
        ROW,
    ],
    nullable=False,
)
ROWS = [
    (1, "a", Decimal("-1.28"), 1_577_836_812_300_000_000, 18262, [1, None], {"k": 2}, (7, "z")),
    (2, None, None, None, None, None, None, None),
]


def formats(row_type: RowType):
    context = context_of(row_type, {"format": "avro"})
    found = find_format(context)
    assert found is not None
    factory, options, _ = found
    return factory.create_decoding_format(context, options), factory.create_encoding_format(context, options)


def test_rows_that_are_written_are_read():
    decoding, encoding = formats(TYPE)
    batch = batch_of(ROWS, TYPE)
    messages = encoding.create_encoder(TYPE).encode(batch)
    # 1 as a zigzag number; branch 1 of a union, a length and "a"; branch 1, one byte of -128
    assert messages[0].startswith(b"\x02\x02\x02a\x02\x02\x80")
    assert messages[1] == b"\x04" + b"\x00" * 7
    decoded = decoding.create_decoder(TYPE).decode(messages)
    assert row_texts(ColumnBatch(decoded.data), TYPE) == row_texts(batch, TYPE)
    some = RowType([TYPE.fields[7], TYPE.fields[0]], nullable=False)
    decoded = decoding.create_decoder(some).decode([messages[0], None])
    assert row_texts(ColumnBatch(decoded.data), some) == ["+I[+I[7, z], 1]"]
    assert decoded.messages.tolist() == [0]


def test_types_that_avro_lacks():
    with pytest.raises(ValidationError, match="does not support TIMESTAMP type with precision: 6"):
        formats(RowType.of(["a"], [DataTypes.TIMESTAMP(6)]))
