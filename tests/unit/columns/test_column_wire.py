"""Column batches as bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from firesteel.common.errors import RecordSerializationError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.wire import ColumnDecoder, ColumnEncoder, EncodedColumns, decode_columns, encode_columns
from tests.support.columns import bids, simple


def _payload(encoded: EncodedColumns) -> bytes:
    payload = b"".join(encoded.parts())
    assert len(payload) == len(encoded)
    return payload


@pytest.mark.parametrize(
    "batch",
    [simple(1, 2), simple(1, 2, kinds=[1, 2]), simple(5, rowtime=0), bids(1000), bids(1000)[17:333], simple()],
    ids=["plain", "kinds", "rowtime", "nulls", "slice", "empty"],
)
def test_a_batch_by_itself(batch: ColumnBatch) -> None:
    assert decode_columns(encode_columns(batch)) == batch


def test_the_schema_is_sent_once_per_channel_and_again_when_it_changes() -> None:
    encoder, decoder = ColumnEncoder(), ColumnDecoder()
    first, second = bids(10, seed=1), bids(10, seed=2)
    payloads = [_payload(encoder.encode(batch)) for batch in (first, second, simple(1), first)]
    schema = len(first.data.schema.serialize())
    # the record batches differ in length by some texts only
    assert len(payloads[0]) - len(payloads[1]) > schema - 400
    assert len(payloads[3]) == len(payloads[0])
    assert [decoder.decode(payload) for payload in payloads] == [first, second, simple(1), first]


def test_a_batch_whose_schema_was_sent_before_can_be_stored_by_itself() -> None:
    encoder = ColumnEncoder()
    encoder.encode(bids(10))
    later = encoder.encode(bids(20, seed=3))
    with pytest.raises(RecordSerializationError):
        decode_columns(_payload(later))
    assert decode_columns(later.to_bytes(with_schema=True)) == bids(20, seed=3)


def test_columns_are_read_where_the_payload_is() -> None:
    payload = bytearray(encode_columns(bids(1000)))
    address = pa.py_buffer(payload).address
    column = decode_columns(payload).data.column(0).buffers()[1].address
    assert address < column < address + len(payload)
    assert (column - address) % 8 == 0


def test_dictionaries_may_differ_between_batches() -> None:
    encoder, decoder = ColumnEncoder(), ColumnDecoder()
    nested = pa.array([["a"], ["b", None]], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    for texts in (["a", "b"], ["c", None]):
        column = pa.array(texts).dictionary_encode()
        batch = ColumnBatch(pa.record_batch({"text": column, "list": nested}))
        assert decoder.decode(_payload(encoder.encode(batch))) == batch
    # columns without dictionaries on the same channel
    assert decoder.decode(_payload(encoder.encode(simple(1)))) == simple(1)
