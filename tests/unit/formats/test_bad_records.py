"""What becomes of messages that cannot be read, decoded in a reader of our own and in a whole job."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.common import Types, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError, JobExecutionError
from firesteel.common.serialization import DeserializationSchema, SimpleStringSchema
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.connectors.generators.collection import CollectionSplit
from firesteel.formats.bad_records import BadRecord, BadRecordError, BadRecords, RecordDecoder
from firesteel.formats.json.messages import JsonRowDeserializationSchema
from firesteel.runtime.model.metrics import MetricGroup, MetricRegistry
from firesteel.spi.source import Boundedness, InputStatus, Source
from firesteel.testing import collect, test_environment

TAG = OutputTag("bad")
ALL_POLICIES = [BadRecords.fail(), BadRecords.drop(), BadRecords.side_output(TAG)]


class FakeContext:
    def __init__(self):
        self.registry = MetricRegistry()

    def get_metrics_group(self):
        return MetricGroup(self.registry)

    @property
    def errors(self):
        return self.registry.snapshot().get("numRecordsInErrors")


class FakeOutput:
    def __init__(self):
        self.side = []

    def emit_side(self, tag, values):
        self.side += [(tag, value) for value in values]


class Numbers(DeserializationSchema):
    """Numbers as text; nothing for an empty message. Counts what it is asked."""

    def __init__(self):
        self.opened = self.batches = self.singles = 0

    def open(self):
        self.opened += 1

    def deserialize(self, message):
        self.singles += 1
        return int(message) if message else None

    def deserialize_batch(self, messages):
        self.batches += 1
        return [int(message) if message else None for message in messages]


def decode(messages, policy, timestamps=None, schema=None):
    context, output, schema = FakeContext(), FakeOutput(), schema or Numbers()
    decoder = RecordDecoder(schema, policy, context, "orders")
    records, times = decoder.decode(messages, timestamps, output, lambda i: ("orders-0", 100 + i))
    return records, times, context, output, schema


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=repr)
def test_good_messages_are_decoded_in_one_go(policy):
    records, times, context, output, schema = decode([b"1", b"2"], policy, [10, 20])

    assert (records, times) == ([1, 2], [10, 20])
    assert (schema.opened, schema.batches, schema.singles) == (1, 1, 0)
    assert not output.side
    assert context.errors in (None, 0)


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=repr)
def test_skipped_messages_are_left_out_with_their_timestamps(policy):
    assert decode([b"1", b"", b"3"], policy, [10, 20, 30])[:2] == ([1, 3], [10, 30])
    assert decode([b"", b""], policy)[:2] == ([], None)


def test_a_falsy_record_is_a_record():
    assert decode([b"0"], BadRecords.fail(), [7])[:2] == ([0], [7])


def test_failing_names_source_split_offset_reason_and_bytes():
    with pytest.raises(BadRecordError) as raised:
        decode([b"1", b"x" * 200, b"y"], BadRecords.fail())

    error = pickle.loads(pickle.dumps(raised.value))
    assert error.bad_record.source == "orders"
    assert (error.bad_record.split, error.bad_record.offset) == ("orders-0", 101)
    assert "invalid literal" in error.bad_record.reason
    assert error.bad_record.raw == b"x" * 200
    for part in ("'orders'", "'orders-0'", "101", "xxx", "200 bytes", "set_bad_records"):
        assert part in str(error)


def test_dropped_messages_are_counted():
    records, times, context, output, _ = decode([b"1", b"x", b"", b"4"], BadRecords.drop(), [1, 2, 3, 4])

    assert (records, times) == ([1, 4], [1, 4])
    assert context.errors == 1
    assert not output.side


def test_the_side_output_has_raw_bytes_place_and_reason():
    records, _, context, output, _ = decode([b"x", b"2", b"y"], BadRecords.side_output(TAG))

    assert records == [2]
    assert context.errors == 2
    assert [tag for tag, _ in output.side] == [TAG, TAG]
    first, second = [bad for _, bad in output.side]
    assert (first.raw, first.source, first.split, first.offset) == (b"x", "orders", "orders-0", 100)
    assert (second.raw, second.offset) == (b"y", 102)
    assert "invalid literal" in first.reason


def test_the_reason_of_our_own_errors_is_their_message_without_the_hint():
    *_, output, _ = decode([b"\xff"], BadRecords.side_output(TAG), schema=SimpleStringSchema())

    assert "not utf-8 text" in output.side[0][1].reason
    assert "Hint" not in output.side[0][1].reason


def test_readers_that_parse_by_themselves_reject():
    context, output = FakeContext(), FakeOutput()
    decoder = RecordDecoder(SimpleStringSchema(), BadRecords.side_output(TAG), context, "/data/a.csv")
    decoder.reject(b"raw", "split-1", 17, ValueError("three columns"), output)

    expected = BadRecord(b"raw", "/data/a.csv", "split-1", 17, "ValueError: three columns")
    assert output.side == [(TAG, expected)]
    with pytest.raises(BadRecordError):
        RecordDecoder(SimpleStringSchema(), BadRecords.fail(), context, "x").reject(b"", "s", 0, ValueError(), output)


def test_policies_are_pickled_and_checked():
    for policy in ALL_POLICIES:
        assert pickle.loads(pickle.dumps(policy)) == policy
    with pytest.raises(InvalidProgramError, match="OutputTag"):
        BadRecords.side_output("bad")


class MessageSource(Source):
    """Reads messages of a list; the offset of a message is its index."""

    def __init__(self, messages, schema, policy):
        self.messages = messages
        self.schema = schema
        self.policy = policy

    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self, context):
        return OwnedSplitEnumerator(context, [CollectionSplit("messages-0", 0, len(self.messages))])

    def create_reader(self, context):
        return MessageReader(context, self)


class MessageReader(SequentialSplitReader):
    def __init__(self, context, source):
        super().__init__(context)
        self._messages = source.messages
        self._decoder = RecordDecoder(source.schema, source.policy, context, "messages")

    def open_split(self, split):
        self._position = split.position

    def read_split(self, split, output, max_records):
        begin, end = self._position, min(self._position + max_records, split.stop)
        self._position = end
        records, _ = self._decoder.decode(
            self._messages[begin:end], None, output, lambda i: (split.split_id, begin + i)
        )
        output.collect(split.split_id, records)
        return InputStatus.END_OF_INPUT if end == split.stop else InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split):
        return replace(split, position=self._position)


def message_stream(policy):
    schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["n"], [Types.INT()])).build()
    messages = [b'{"n":1}', b'{"n":"one"}', b"{", b'{"n":2}']
    source = MessageSource(messages, schema, policy)
    return test_environment().from_source(source, WatermarkStrategy.no_watermarks(), "messages")


def test_bad_records_reach_a_side_output_of_the_source_in_a_job():
    bad = collect(message_stream(BadRecords.side_output(TAG)).get_side_output(TAG))

    assert [(record.raw, record.split, record.offset) for record in bad] == [
        (b'{"n":"one"}', "messages-0", 1),
        (b"{", "messages-0", 2),
    ]
    assert bad[0].reason == "Field 'n': expected an integer of 32 bits, got str 'one'."
    assert bad[1].reason.startswith("The message is not JSON: ")


def test_the_good_records_go_on_in_a_job():
    assert [row.n for row in collect(message_stream(BadRecords.drop()))] == [1, 2]


def test_a_job_fails_at_a_bad_record_by_default():
    with pytest.raises(JobExecutionError, match="split 'messages-0', offset 1"):
        collect(message_stream(BadRecords.fail()))
