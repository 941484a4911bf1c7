"""The reader of a Kafka source by itself: splits that are paused, what is left to read, how soon to look again."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from firesteel.connectors.kafka.source.split import DiscoveryFinished, KafkaPartitionSplit
from firesteel.spi.execution_traits import EPOCHS, PIPELINED
from firesteel.spi.source import InputStatus
from firesteel.testing import eventually
from tests.support.services.kafka_topics import builder, fresh_topic, produce, produce_transaction, values


class Metrics:
    def __init__(self):
        self.counts = Counter()
        self.gauges = {}

    def counter(self, name):
        metrics = self

        class Count:
            def inc(self, n=1):
                metrics.counts[name] += n

        return Count()

    def gauge(self, name, read):
        self.gauges[name] = read


class Context:
    subtask_index = 0
    parallelism = 1
    attempt_number = 0

    def __init__(self, in_epochs=False):
        self.execution = EPOCHS if in_epochs else PIPELINED
        self.reuses_objects = False
        self.metrics = Metrics()
        self.requests = 0

    def get_metrics_group(self):
        return self.metrics

    def send_split_request(self):
        self.requests += 1


class Reader:
    """A reader, what it emits, and that its position is always behind that."""

    def __init__(self, source, *splits, in_epochs=False):
        self.context = Context(in_epochs)
        self.reader = source.create_reader(self.context)
        self.records = {}
        self.released = []
        self.reader.add_splits(splits)
        self.reader.start()

    def collect(self, split_id, records, timestamps):
        assert len(records) == len(timestamps)
        self.records.setdefault(split_id, []).extend(records)
        positions = {split.split_id: split.offset for split in self.reader.snapshot_state(1)}
        assert positions.get(split_id, float("inf")) >= len(self.records[split_id])  # offsets begin at 0

    def release_split(self, split_id):
        self.released.append(split_id)

    def poll(self, max_records=100):
        return self.reader.poll_next(self, max_records)

    def reads(self, split_id, count):
        def enough():
            self.poll()
            return len(self.records.get(split_id, [])) >= count

        eventually(enough, interval=0.001)
        assert len(self.records[split_id]) == count

    def splits(self):
        return self.reader.snapshot_state(2)


@pytest.fixture
def opened():
    readers = []

    def open_(source, *splits, **options):
        readers.append(Reader(source, *splits, **options))
        return readers[-1]

    yield open_
    for each in readers:
        each.reader.close()


def test_a_paused_split_emits_nothing_and_loses_nothing(kafka, opened):
    topic = fresh_topic(kafka, 2)
    for partition in range(2):
        produce(kafka, topic, values(5000), partition=partition)
    a, b = f"{topic}-0", f"{topic}-1"
    source = builder(kafka, topic).build()
    reader = opened(source, KafkaPartitionSplit(topic, 0, 0), KafkaPartitionSplit(topic, 1, 0))
    before = 0
    for _ in range(7):
        eventually(lambda: reader.poll() is not None and len(reader.records.get(a, [])) > before, interval=0.001)

        reader.reader.pause_or_resume_splits({a}, set())
        before = len(reader.records[a])
        assert before < 5000
        for _ in range(20):
            reader.poll()
        assert len(reader.records.get(a, [])) == before
        assert {split.split_id: split.offset for split in reader.splits()}[a] == before

        reader.reader.pause_or_resume_splits(set(), {a})

    reader.reads(a, 5000)
    reader.reads(b, 5000)
    assert reader.records == {a: values(5000), b: values(5000)}


def test_messages_that_come_after_the_pause_are_kept_in_order(kafka, opened):
    """The consumer may hand out what it had fetched before it was told to pause."""
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(100))
    split = f"{topic}-0"
    reader = opened(builder(kafka, topic).build(), KafkaPartitionSplit(topic, 0, 0, 100))
    partition = reader.reader._partitions[topic, 0]
    partition.paused = True  # the consumer has not heard of it

    def has_held_all():
        reader.poll(30)
        return len(partition.held) >= 100

    eventually(has_held_all, interval=0.001)
    assert reader.records == {}
    assert reader.splits() == [KafkaPartitionSplit(topic, 0, 0, 100)]

    reader.reader.pause_or_resume_splits(set(), {split})
    reader.reader.notify_no_more_splits()

    eventually(lambda: reader.poll() is InputStatus.END_OF_INPUT, interval=0.001)
    assert reader.records == {split: values(100)}
    assert reader.released == [split]


def test_what_is_left_to_read(kafka, opened):
    topic = fresh_topic(kafka)
    produce_transaction(kafka, topic, values(100))
    reader = opened(builder(kafka, topic).build(), KafkaPartitionSplit(topic, 0, 0))
    assert reader.reader.pending_records() == 1, "there may be something"

    eventually(lambda: reader.poll(10) is not None and bool(reader.records), interval=0.001)
    read = len(reader.records[f"{topic}-0"])
    # the marker of the transaction counts too, once it has been seen
    assert reader.reader.pending_records() in (100 - read, 101 - read)

    reader.reads(f"{topic}-0", 100)
    eventually(lambda: reader.poll() is not None and reader.reader.pending_records() == 0, interval=0.001)
    assert reader.splits() == [KafkaPartitionSplit(topic, 0, 101)], "past the marker"
    produce(kafka, topic, values(1))
    eventually(lambda: reader.context.metrics.gauges["pendingRecords"]() == 1, interval=0.001)


def test_in_epochs_a_reader_without_splits_has_not_read_all_until_it_is_told_so(kafka, opened):
    reader = opened(builder(kafka, fresh_topic(kafka)).build(), in_epochs=True)
    assert reader.context.requests == 1
    assert reader.poll() is InputStatus.NOTHING_AVAILABLE
    assert reader.reader.pending_records() == 1
    assert reader.reader.available_at() is not None

    reader.reader.handle_source_event(DiscoveryFinished())

    assert reader.poll() is InputStatus.NOTHING_AVAILABLE
    assert reader.reader.pending_records() == 0
    assert reader.reader.available_at() is None


def test_the_longer_there_is_nothing_the_later_it_is_looked_for(kafka, opened, monkeypatch):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(10))
    reader = opened(builder(kafka, topic).build(), KafkaPartitionSplit(topic, 0, 0))
    assert opened(builder(kafka, topic).build()).reader.available_at() is None
    reader.reads(f"{topic}-0", 10)

    now = 0.0
    monkeypatch.setattr("firesteel.connectors.kafka.source.reader.time", SimpleNamespace(monotonic=lambda: now))

    def pause(idle):
        reader.reader._last_data = now - idle
        return reader.reader.available_at() - now

    assert pause(0) < pause(0.1) < pause(60) <= 0.01


def test_offsets_are_shown_as_metrics(kafka, opened):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(10))
    reader = opened(builder(kafka, topic).set_group_id(topic).build(), KafkaPartitionSplit(topic, 0, 4))
    gauges = reader.context.metrics.gauges
    prefix = f"KafkaSourceReader.topic.{topic}.partition.0"
    assert gauges[f"{prefix}.currentOffset"]() == -1

    eventually(lambda: reader.poll() is not None and gauges[f"{prefix}.currentOffset"]() == 9, interval=0.001)
    assert gauges[f"{prefix}.committedOffset"]() == -1
    reader.reader.snapshot_state(1)
    reader.reader.notify_checkpoint_complete(1)

    eventually(lambda: reader.poll() is not None and gauges[f"{prefix}.committedOffset"]() == 10, interval=0.001)
    assert reader.context.metrics.counts["KafkaSourceReader.commitsSucceeded"] == 1
