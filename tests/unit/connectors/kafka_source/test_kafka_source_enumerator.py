"""How partitions are found and given out, with a cluster that a test makes up."""

from __future__ import annotations

import pickle
from collections import defaultdict
from contextlib import contextmanager
from itertools import pairwise
from threading import Event

import pytest

from firesteel.connectors.kafka.client_errors import BrokerUnavailableError, OffsetOutOfRangeError, UnknownTopicError
from firesteel.connectors.kafka.source.enumerator import KafkaSourceEnumerator, OffsetLookup, PartitionDiscovery
from firesteel.connectors.kafka.source.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka.source.split import DiscoveryFinished, KafkaPartitionSplit
from firesteel.connectors.kafka.topics import (
    KafkaTopicPartition,
    PartitionSetSubscriber,
    TopicListSubscriber,
    TopicPatternSubscriber,
    split_owner,
)

EARLIEST, LATEST = KafkaOffsetsInitializer.earliest(), KafkaOffsetsInitializer.latest()
INTERVAL = 1000


class Cluster:
    """Topics with their first and last offsets; what ClusterMetadata asks a real one for."""

    group_id = "group"

    def __init__(self, **topics):
        self.topics = topics
        self.first, self.end, self.times, self.group = {}, defaultdict(lambda: 10), {}, {}
        self.error = None

    @contextmanager
    def metadata(self, abandoned):
        if self.error is not None:
            raise self.error
        yield self

    def all_topics(self):
        return dict(self.topics)

    def partition_counts(self, topics):
        for topic in topics:
            if topic not in self.topics:
                raise UnknownTopicError(f"no topic {topic}", topic=topic)
        return {topic: self.topics[topic] for topic in topics}

    def committed_offsets(self, partitions):
        return {partition: self.group[partition] for partition in partitions if partition in self.group}

    def beginning_offsets(self, partitions):
        return {partition: self.first.get(partition, 0) for partition in partitions}

    def end_offsets(self, partitions):
        return {partition: self.end[partition] for partition in partitions}

    def offsets_for_times(self, timestamps):
        return {
            partition: offset
            for partition, timestamp in timestamps.items()
            for at, offset in self.times.get(partition, {}).items()
            if at >= timestamp
        }


class Context:
    """Makes asynchronous calls when the test says so."""

    def __init__(self, parallelism=2):
        self.parallelism = parallelism
        self.readers = []
        self.assigned = defaultdict(list)
        self.no_more = set()
        self.events = []
        self.calls = []

    def current_parallelism(self):
        return self.parallelism

    def registered_readers(self):
        return list(self.readers)

    def assign_split(self, split, subtask):
        assert subtask in self.readers
        assert subtask not in self.no_more
        self.assigned[subtask].append(split)

    def signal_no_more_splits(self, subtask):
        self.no_more.add(subtask)

    def send_event_to_reader(self, subtask, event):
        self.events.append((subtask, event))

    def call_async(self, call, handler, *, initial_delay_ms=0, period_ms=None):
        self.calls.append((call, handler, initial_delay_ms, period_ms))

    def run(self):
        """One round of calls; those with a period are made again in the next."""
        calls, self.calls = self.calls, []
        for call, handler, delay, period in calls:
            try:
                result, error = call(), None
            except Exception as raised:
                result, error = None, raised
            if period is not None:
                self.calls.append((call, handler, delay, period))
            handler(result, error)

    @property
    def splits(self):
        return sorted((split for splits in self.assigned.values() for split in splits), key=lambda s: s.split_id)


class Job:
    def __init__(
        self,
        cluster,
        subscriber=None,
        starting=EARLIEST,
        stopping=None,
        bounded=False,
        interval=INTERVAL,
        parallelism=2,
        restored=None,
        readers=True,
    ):
        self.context = Context(parallelism)
        self.abandoned = Event()
        subscriber = subscriber or TopicListSubscriber(["a"])
        self.enumerator = KafkaSourceEnumerator(
            self.context,
            PartitionDiscovery(cluster.metadata, subscriber, self.abandoned),
            OffsetLookup(cluster.metadata, starting, stopping, self.abandoned),
            OffsetLookup(cluster.metadata, EARLIEST, stopping, self.abandoned),
            interval_ms=None if bounded else interval,
            ends=stopping is not None,
            is_bounded=bounded,
            abandoned=self.abandoned,
            restored=restored,
        )
        self.enumerator.start()
        if readers:
            for reader in range(parallelism):
                self.add_reader(reader)

    def add_reader(self, reader):
        self.context.readers.append(reader)
        self.enumerator.add_reader(reader)

    def run(self, rounds=1):
        for _ in range(rounds):
            self.context.run()
        return self.context

    def snapshot(self):
        return pickle.loads(pickle.dumps(self.enumerator.snapshot_state(1)))


def split(topic, partition, offset=0, stopping=None):
    return KafkaPartitionSplit(topic, partition, offset, stopping)


# -- assignment -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "partition", "readers", "owner"),
    # what Flink's KafkaSourceEnumerator.getSplitOwner gives; "hello".hashCode() is 99162322
    [("hello", 0, 10, 99162322 * 31 % 2**31 % 10), ("hello", 3, 10, (99162322 * 31 % 2**31 + 3) % 10), ("a", 0, 4, 3)],
)
def test_the_owner_of_a_partition_is_flinks(topic, partition, readers, owner):
    assert split_owner(topic, partition, readers) == owner


@pytest.mark.parametrize("topic", ["orders", "a-very-long-name-of-a-topic-that-overflows", "größe", "𝄞"])
def test_the_partitions_of_a_topic_are_spread_evenly(topic):
    owners = [split_owner(topic, partition, 4) for partition in range(12)]
    assert sorted(owners) == sorted([0, 1, 2, 3] * 3)
    assert all((later - earlier) % 4 == 1 for earlier, later in pairwise(owners))


def test_each_partition_goes_to_its_owner_whoever_starts_first():
    job = Job(Cluster(a=4), readers=False)
    job.run()
    assert job.context.splits == []

    for reader in (1, 0):
        job.add_reader(reader)

    assert job.context.splits == [split("a", number) for number in range(4)]
    for reader, splits in job.context.assigned.items():
        assert all(split_owner("a", each.partition, 2) == reader for each in splits)


def test_splits_of_a_reader_that_failed_are_given_back_to_it():
    job = Job(Cluster(a=2))
    context = job.run()
    [first] = context.assigned.pop(0)

    context.readers.remove(0)
    job.enumerator.add_splits_back([first], 0)
    assert 0 not in context.assigned
    job.add_reader(0)

    assert context.assigned[0] == [first]


def test_nobody_needs_to_ask_but_who_does_learns_when_it_has_all():
    job = Job(Cluster(a=2))
    job.enumerator.handle_split_request(1, None)
    assert job.context.events == []

    assert job.run().events == [(1, DiscoveryFinished())]

    job.enumerator.handle_split_request(0, None)
    assert job.context.events[1:] == [(0, DiscoveryFinished())]


# -- the end ----------------------------------------------------------------------------------------


def test_a_bounded_source_says_that_there_are_no_more():
    job = Job(Cluster(a=2), stopping=LATEST, bounded=True)
    assert job.context.no_more == set()

    context = job.run()

    assert context.no_more == {0, 1}
    assert context.splits == [split("a", number, 0, 10) for number in range(2)]
    assert context.calls == []


def test_a_stream_that_stops_ends_if_it_looks_for_nothing_new():
    assert Job(Cluster(a=1), stopping=LATEST, interval=None).run().no_more == {0, 1}
    assert Job(Cluster(a=1), stopping=LATEST).run().no_more == set()
    assert Job(Cluster(a=1), interval=None).run().no_more == set()


def test_a_bounded_source_without_partitions():
    assert Job(Cluster(), TopicPatternSubscriber(".*"), stopping=LATEST, bounded=True).run().no_more == {0, 1}


# -- discovery --------------------------------------------------------------------------------------


def test_partitions_that_come_later_are_read_from_their_beginning():
    cluster = Cluster(a=1)
    job = Job(cluster, starting=LATEST)
    context = job.run()
    assert context.splits == [split("a", 0, 10)]
    assert [call[2:] for call in context.calls] == [(INTERVAL, INTERVAL)]

    cluster.topics["a"] = 3
    job.run(2)

    assert context.splits == [split("a", 0, 10), split("a", 1), split("a", 2)]
    job.run(3)
    assert len(context.splits) == 3


def test_topics_that_come_later():
    cluster = Cluster(a1=1, b=1)
    job = Job(cluster, TopicPatternSubscriber("a."))
    context = job.run()
    cluster.topics |= {"a2": 1, "xa3": 1, "a44": 1}

    job.run(2)

    assert context.splits == [split("a1", 0), split("a2", 0)]


def test_without_an_interval_nothing_is_looked_for_again():
    assert Job(Cluster(a=1), interval=None).run().calls == []


def test_certain_partitions_only():
    wanted = PartitionSetSubscriber({KafkaTopicPartition("a", 1)})
    assert Job(Cluster(a=3), wanted).run().splits == [split("a", 1)]
    with pytest.raises(UnknownTopicError, match="from 0 on"):
        Job(Cluster(a=1), wanted).run()


def test_the_first_discovery_must_succeed():
    cluster = Cluster(a=1)
    cluster.error = BrokerUnavailableError("away")
    with pytest.raises(BrokerUnavailableError):
        Job(cluster).run()
    with pytest.raises(UnknownTopicError):
        Job(Cluster(b=1)).run()


def test_later_ones_wait_for_the_brokers():
    cluster = Cluster(a=1)
    job = Job(cluster)
    job.run()
    cluster.error, cluster.topics["a"] = BrokerUnavailableError("away"), 2
    job.run(2)

    cluster.error = None
    assert job.run(2).splits == [split("a", 0), split("a", 1)]


def test_offsets_that_cannot_be_looked_up_are_looked_up_the_next_time():
    cluster = Cluster(a=1)
    job = Job(cluster)
    job.run()
    cluster.topics["a"] = 2
    job.run()  # finds the partition, and has yet to look up its offsets
    cluster.error = BrokerUnavailableError("away")
    job.run()

    cluster.error = None
    assert job.run(2).splits == [split("a", 0), split("a", 1)]


def test_a_topic_that_is_gone_fails_the_job():
    cluster = Cluster(a=1)
    job = Job(cluster)
    job.run()
    del cluster.topics["a"]
    with pytest.raises(UnknownTopicError):
        job.run()


def test_calls_that_are_under_way_hear_that_nobody_waits_for_them():
    job = Job(Cluster(a=1))
    job.enumerator.close()
    assert job.abandoned.is_set()


# -- checkpoints ------------------------------------------------------------------------------------


def test_what_is_assigned_is_not_assigned_again():
    cluster = Cluster(a=2)
    job = Job(cluster)
    job.run()
    cluster.topics["a"] = 3

    restored = Job(cluster, starting=LATEST, restored=job.snapshot(), parallelism=3)

    assert restored.run(2).splits == [split("a", 2)], "found while the job was down: from its beginning"


def test_what_waits_for_a_reader_keeps_its_offsets():
    cluster = Cluster(a=2)
    job = Job(cluster, starting=LATEST, readers=False)
    job.run()
    cluster.end = defaultdict(lambda: 99)

    restored = Job(cluster, starting=LATEST, restored=job.snapshot(), parallelism=3)

    assert restored.run(2).splits == [split("a", 0, 10), split("a", 1, 10)]


def test_before_the_first_discovery_there_is_nothing_to_keep():
    job = Job(Cluster(a=1), starting=LATEST)
    assert not job.snapshot().initial_discovery_finished

    assert Job(Cluster(a=1), starting=LATEST, restored=job.snapshot()).run().splits == [split("a", 0, 10)]


def test_a_restored_bounded_source_reads_nothing_new():
    cluster = Cluster(a=1)
    job = Job(cluster, stopping=LATEST, bounded=True)
    job.run()
    cluster.topics["a"] = 2

    restored = Job(cluster, stopping=LATEST, bounded=True, restored=job.snapshot())

    assert restored.context.no_more == {0, 1}
    assert restored.run().splits == []


def test_a_restored_source_waits_for_the_brokers():
    cluster = Cluster(a=1)
    job = Job(cluster)
    job.run()
    cluster.error = BrokerUnavailableError("away")
    restored = Job(cluster, restored=job.snapshot())
    restored.enumerator.handle_split_request(0, None)
    restored.run()
    assert restored.context.events == []

    cluster.error = None
    assert restored.run().events == [(0, DiscoveryFinished())]


# -- offsets ----------------------------------------------------------------------------------------

A, B = KafkaTopicPartition("a", 0), KafkaTopicPartition("a", 1)


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        (EARLIEST, {A: 2, B: 0}),
        (LATEST, {A: 20, B: 10}),
        (KafkaOffsetsInitializer.timestamp(500), {A: 7, B: 10}),
        (KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST), {A: 5, B: 10}),
        (KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST), {A: 5, B: 0}),
        (KafkaOffsetsInitializer.offsets({B: 4}), {A: 5, B: 4}),
        (KafkaOffsetsInitializer.offsets({A: 4}), {A: 4, B: 0}),
        (KafkaOffsetsInitializer.offsets({A: 4}, KafkaOffsetResetStrategy.LATEST), {A: 4, B: 10}),
    ],
)
def test_initializers(initializer, expected):
    cluster = Cluster(a=2)
    cluster.first[A], cluster.end[A], cluster.times[A], cluster.group[A] = 2, 20, {600: 7}, 5

    assert initializer.get_partition_offsets([A, B], cluster) == expected


def test_without_a_group_nothing_is_committed():
    cluster = Cluster(a=2)
    cluster.group_id = None
    cluster.group[A] = 5

    assert KafkaOffsetsInitializer.offsets({B: 4}).get_partition_offsets([A, B], cluster) == {A: 0, B: 4}


def test_no_offset_and_none_may_be_taken_instead():
    with pytest.raises(OffsetOutOfRangeError, match="partition 1") as caught:
        KafkaOffsetsInitializer.offsets({A: 4}, KafkaOffsetResetStrategy.NONE).get_partition_offsets(
            [A, B], Cluster(a=2)
        )
    assert (caught.value.topic, caught.value.partition) == ("a", 1)
