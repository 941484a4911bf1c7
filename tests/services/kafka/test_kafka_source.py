"""What a Kafka source reads of a real broker: which partitions, from where, up to where, as what."""

from __future__ import annotations

from collections import defaultdict

import pytest

from firesteel.common import Configuration, Time, Types, WatermarkStrategy
from firesteel.datastream import ProcessFunction
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaTopicPartition,
)
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import collect, eventually, test_environment
from tests.support.jobs.running_jobs import no_job_goes_on, start  # noqa: F401 - a fixture
from tests.support.services.kafka_topics import (
    builder,
    commit,
    fresh_topic,
    produce,
    produce_transaction,
    stream_of,
    values,
)

EARLIEST, LATEST = KafkaOffsetsInitializer.earliest(), KafkaOffsetsInitializer.latest()


def read(source, parallelism=1, configuration=()):
    settings = Configuration()
    for key, value in dict(configuration).items():
        settings.set_string(key, value)
    return collect(stream_of(test_environment(parallelism, settings), source))


class Places(KafkaRecordDeserializationSchema):
    """Where each record is."""

    def deserialize(self, record, out):
        out.collect((record.partition, record.offset, record.value.decode()))


class Twice(KafkaRecordDeserializationSchema):
    """All there is to know of a record, two times."""

    def open(self):
        self.is_open = True

    def deserialize(self, record, out):
        assert self.is_open
        for _ in range(2):
            out.collect((record.topic, record.offset, record.timestamp, record.key, record.value, record.headers))


# -- which partitions -------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 3])
def test_each_partition_is_read_once_and_in_order(kafka, parallelism):
    topic = fresh_topic(kafka, 4)
    produce(kafka, topic, values(4000), partitions=4)
    source = builder(kafka, topic).set_deserializer(Places()).set_bounded(LATEST).build()

    by_partition = defaultdict(list)
    for partition, offset, value in read(source, parallelism):
        by_partition[partition].append((offset, value))

    assert by_partition == {number: list(enumerate(values(4000)[number::4])) for number in range(4)}


def test_several_topics(kafka):
    topics = [fresh_topic(kafka, partitions) for partitions in (1, 2, 3)]
    for number, topic in enumerate(topics):
        produce(kafka, topic, values(60, number * 60), partitions=number + 1)

    assert sorted(read(builder(kafka, *topics).set_bounded(LATEST).build(), 2)) == sorted(values(180))


def test_topics_by_pattern(kafka):
    wanted = [fresh_topic(kafka, 1, "by.pattern") for _ in range(2)]
    other = fresh_topic(kafka, 1, "not.by.pattern")
    for number, topic in enumerate([*wanted, other]):
        produce(kafka, topic, values(3, number * 3))
    source = builder(kafka).set_topic_pattern(r"by\.pattern-.*").set_bounded(LATEST).build()

    assert sorted(read(source)) == values(6)


def test_certain_partitions(kafka):
    topic = fresh_topic(kafka, 3)
    produce(kafka, topic, values(9), partitions=3)
    wanted = {KafkaTopicPartition(topic, 0), KafkaTopicPartition(topic, 2)}
    source = builder(kafka).set_partitions(wanted).set_bounded(LATEST).build()

    assert sorted(read(source, 2)) == [value for number, value in enumerate(values(9)) if number % 3 != 1]


# -- from where, up to where ------------------------------------------------------------------------


def offsets_of(name, topic):
    none_of_it = KafkaTopicPartition(topic, 1)
    return {
        "earliest": EARLIEST,
        "latest": LATEST,
        "timestamp": KafkaOffsetsInitializer.timestamp(1_500),
        "timestamp of none": KafkaOffsetsInitializer.timestamp(9_000),
        "explicit": KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 7}),
        "explicit, else earliest": KafkaOffsetsInitializer.offsets({none_of_it: 7}),
        "explicit, else latest": KafkaOffsetsInitializer.offsets({none_of_it: 7}, KafkaOffsetResetStrategy.LATEST),
        "committed": KafkaOffsetsInitializer.committed_offsets(),
        "committed, else earliest": KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST),
        "committed, else latest": KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST),
    }[name]


def topic_of_three_times(kafka):
    """Ten records of each of three seconds."""
    topic = fresh_topic(kafka)
    for number in range(3):
        produce(kafka, topic, values(10, number * 10), timestamp=1_000 * (number + 1))
    return topic


@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        ("earliest", values(30)),
        ("latest", []),
        ("timestamp", values(20, 10)),
        ("timestamp of none", []),
        ("explicit", values(23, 7)),
        ("explicit, else earliest", values(30)),
        ("explicit, else latest", []),
        ("committed", values(18, 12)),
        ("committed, else earliest", values(30)),
        ("committed, else latest", []),
    ],
)
def test_starting_offsets(kafka, starting, expected):
    topic = topic_of_three_times(kafka)
    if starting == "committed":
        commit(kafka, topic, topic, 12)
    source = builder(kafka, topic).set_group_id(topic).set_starting_offsets(offsets_of(starting, topic))

    assert read(source.set_bounded(LATEST).build()) == expected


@pytest.mark.parametrize(
    ("stopping", "expected"),
    [
        ("earliest", []),
        ("latest", values(30)),
        ("timestamp", values(10)),
        ("timestamp of none", values(30)),
        ("explicit", values(7)),
        ("committed", values(12)),
    ],
)
@pytest.mark.parametrize("bounded", [True, False])
def test_stopping_offsets(kafka, stopping, expected, bounded):
    topic = topic_of_three_times(kafka)
    if stopping == "committed":
        commit(kafka, topic, topic, 12)
    source = builder(kafka, topic).set_group_id(topic)
    stop = offsets_of(stopping, topic)

    assert read((source.set_bounded(stop) if bounded else source.set_unbounded(stop)).build()) == expected


def test_from_the_latest_offsets_only_what_comes_later_is_read(kafka):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(5))
    job = start(stream_of(test_environment(), builder(kafka, topic).set_starting_offsets(LATEST).build()))
    written = 5

    def one_arrives():
        nonlocal written
        produce(kafka, topic, values(1, written))
        written += 1
        return bool(job.results)

    eventually(one_arrives, interval=0.1)

    def all_arrive():
        assert job.results == values(len(job.results), written - len(job.results))
        return job.results[-1:] == values(1, written - 1)

    eventually(all_arrive)
    assert not set(job.results) & set(values(5))


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted", None])
def test_a_partition_ends_where_its_last_offsets_are_of_no_record(kafka, isolation):
    topic = fresh_topic(kafka)
    produce_transaction(kafka, topic, values(5))
    produce_transaction(kafka, topic, values(5, 5), commit=False)
    source = builder(kafka, topic).set_bounded(LATEST)
    if isolation is not None:
        source.set_property("isolation.level", isolation)

    assert read(source.build()) == (values(5) if isolation == "read_committed" else values(10))


def test_a_partition_ends_at_an_offset_of_no_record(kafka):
    topic = fresh_topic(kafka)
    produce_transaction(kafka, topic, values(5))
    produce(kafka, topic, values(5, 5))
    stop = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 6})

    # offset 5 is the marker of the transaction, offset 6 is the first record that is not read
    assert read(builder(kafka, topic).set_bounded(stop).build()) == values(5)


def test_reading_on_waits_for_an_offset_that_is_not_there_yet(kafka):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(5))
    stop = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 8})
    job = start(stream_of(test_environment(), builder(kafka, topic).set_bounded(stop).build()))
    eventually(lambda: job.results == values(5))

    produce(kafka, topic, values(5, 5))

    assert job.wait() == values(8)


def test_empty_topic(kafka):
    assert read(builder(kafka, fresh_topic(kafka, 3)).set_bounded(LATEST).build(), 2) == []


def test_topics_without_partitions_to_read(kafka):
    assert read(builder(kafka).set_topic_pattern("no-such-.*").set_bounded(LATEST).build(), 2) == []


# -- other executions -------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 3])
def test_as_a_batch(kafka, parallelism):
    topic = fresh_topic(kafka, 4)
    produce(kafka, topic, values(1000), partitions=4)
    source = builder(kafka, topic).set_bounded(LATEST).build()

    assert sorted(read(source, parallelism, {"execution.runtime-mode": "BATCH"})) == sorted(values(1000))


@pytest.mark.parametrize("trigger", ["continuous", "available-now"])
def test_in_epochs(kafka, trigger, tmp_path):
    topic = fresh_topic(kafka, 4)
    produce(kafka, topic, values(1000), partitions=4)
    source = builder(kafka, topic)
    if trigger != "available-now":
        source.set_bounded(LATEST)
    settings = {
        "execution.exchange": "spark",
        "execution.epoch.max-records": "400",
        "execution.epoch.trigger": trigger,
        "execution.checkpointing.dir": str(tmp_path),
    }

    assert sorted(read(source.build(), 2, settings)) == sorted(values(1000))


# -- as what ----------------------------------------------------------------------------------------


def test_a_deserializer_sees_the_whole_record_and_emits_what_it_wants(kafka):
    topic = fresh_topic(kafka)
    produce(kafka, topic, ["a"], timestamp=17, keys=[b"k"], headers=[("h", b"1"), ("h", b"2")])
    produce(kafka, topic, [None], timestamp=18)
    source = builder(kafka, topic).set_deserializer(Twice()).set_bounded(LATEST).build()

    a, none = (topic, 0, 17, b"k", b"a", [("h", b"1"), ("h", b"2")]), (topic, 1, 18, None, None, [])
    assert read(source) == [a, a, none, none]


def test_records_without_a_value_are_passed_over(kafka):
    topic = fresh_topic(kafka)
    produce(kafka, topic, ["a", None, "", "b", None])

    assert read(builder(kafka, topic).set_bounded(LATEST).build()) == ["a", "", "b"]


class Timestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def test_the_time_of_a_record_is_its_timestamp(kafka):
    topic = fresh_topic(kafka)
    for value, timestamp in (("a", 100), ("b", 50)):
        produce(kafka, topic, [value], timestamp=timestamp)
    stream = stream_of(test_environment(), builder(kafka, topic).set_bounded(LATEST).build())

    assert collect(stream.process(Timestamps())) == [("a", 100), ("b", 50)]


def test_event_time_is_that_of_the_slowest_partition(kafka):
    """Partition 0 is an hour ahead of partition 1, and is read first: nothing of partition 1 is late."""
    topic = fresh_topic(kafka, 2)
    produce(kafka, topic, ["ahead"] * 5000, partition=0, timestamp=3_600_000)
    produce(kafka, topic, ["behind"] * 5000, partition=1, timestamp=1_000)
    env = test_environment()
    env.get_config().set_auto_watermark_interval(1)
    source = builder(kafka, topic).set_bounded(LATEST).build()
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    counts = (
        stream.map(lambda value: (value, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )

    assert sorted(collect(counts)) == [("ahead", 5000), ("behind", 5000)]
