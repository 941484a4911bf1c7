"""Source reader of a KafkaSource: one consumer per subtask, polled without blocking."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, ClassVar

from firesteel.connectors.kafka.client_errors import client_error, create_client, kafka_client
from firesteel.connectors.kafka.source.consumer_errors import ConsumerErrors
from firesteel.connectors.kafka.source.deserialization import KafkaRecordDeserializationSchema, create_decoder
from firesteel.connectors.kafka.source.offset_commits import OffsetCommits
from firesteel.connectors.kafka.source.properties import SourceProperties
from firesteel.connectors.kafka.source.split import DiscoveryFinished, KafkaPartitionSplit
from firesteel.formats.bad_records import BadRecords
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, SourceReader

__all__ = ["KafkaSourceReader"]

_log = logging.getLogger(__name__)

_MIN_PAUSE_S = 0.001
_MAX_PAUSE_S = 0.010
_PAUSE_PER_IDLE = 1 / 20
"""How soon to look again, as a part of how long there has been nothing."""
_EPOCH_WAIT_S = 0.01
_EPOCH_PATIENCE_S = 1.0
_MIN_EPOCH_PAUSE_S = 0.2
_MAX_EPOCH_PAUSE_S = 2.0
_CLOSE_TIMEOUT_S = 2.0
_LAST_COMMITS_TIMEOUT_S = 10.0
"""When all has been read: no later attempt will commit."""
_ASK_LEADERS_S = 0.05
_ASK_LEADERS_FOR_S = 2.0


class _Partition:
    """A split that is being read."""

    __slots__ = (
        "current_offset",
        "held",
        "high_at_end",
        "number",
        "paused",
        "position",
        "split_id",
        "stopping_offset",
        "topic",
    )

    def __init__(self, split: KafkaPartitionSplit) -> None:
        self.split_id = split.split_id
        self.topic = split.topic
        self.number = split.partition
        self.position = split.offset
        self.stopping_offset = split.stopping_offset
        self.current_offset = -1
        """Of the last record emitted, for the metric."""
        self.paused = False
        self.held: list[Any] = []
        """Messages that came after the split was paused."""
        self.high_at_end: int | None = None
        """The end of the partition when all before it had been read."""

    def snapshot(self) -> KafkaPartitionSplit:
        return KafkaPartitionSplit(self.topic, self.number, self.position, self.stopping_offset)


class KafkaSourceReader(SourceReader[KafkaPartitionSplit]):
    """Gives the consumer its partitions and positions by hand: no group is joined, nothing is rebalanced.

    librdkafka fetches in threads of its own; a poll takes what is there. A broker that is away is waited for, however
    long. A partition ends when a record, or the end of the partition, is at or after its stopping offset: the offsets
    right before that may belong to no record (markers of transactions, compacted records).
    """

    can_pause_splits: ClassVar[bool] = True

    def __init__(
        self,
        context: ReaderContext,
        properties: SourceProperties,
        deserializer: KafkaRecordDeserializationSchema,
        bad_records: BadRecords,
        *,
        allows_missing_topics: bool,
    ) -> None:
        client = kafka_client()
        self._context = context
        self._servers = properties.servers
        self._has_idle_gaps = context.execution.has_idle_gaps
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._topics: set[str] = set()
        """All topics there ever were."""
        self._ended: list[str] = []
        """Splits that had nothing to read."""
        self._resumed: list[_Partition] = []
        self._unheard: set[_Partition] = set()
        """Partitions of which nothing has come yet."""
        self._ask_leaders_at = self._ask_leaders_until = 0.0
        self._no_more_splits = False
        self._has_first_splits = False
        """Whether it has all there was when the job started: an epoch before that has not read all there is."""
        self._pending_at_poll = 1
        self._last_data = time.monotonic()
        self._error_of, self._partition_of = client.Message.error, client.Message.partition
        self._end_code = client.KafkaError._PARTITION_EOF
        self._metrics = context.get_metrics_group()
        self._decoder = create_decoder(deserializer, bad_records, context)
        self._commits = OffsetCommits(self._metrics) if properties.commits_on_checkpoint else None
        config = properties.for_reader(context.subtask_index)
        self._errors = ConsumerErrors(
            self._servers,
            self._read_topics,
            allows_missing_topics=allows_missing_topics,
            uses_group=properties.group_id is not None,
        )
        config["error_cb"] = self._errors.handle
        if self._commits is not None:
            config["on_commit"] = self._commits.answered
        self._consumer = create_client("Consumer", config)
        if self._commits is not None:
            self._commits.use(self._consumer)
        if not self._has_idle_gaps:
            self._metrics.gauge("pendingRecords", self._count_pending)
        self._errors.use(self._consumer)

    def start(self) -> None:
        """In epochs, asks whether there are more splits to come: each time it is loaded."""
        if self._has_idle_gaps:
            self._context.send_split_request()

    # -- splits -------------------------------------------------------------------------------------

    def add_splits(self, splits: Sequence[KafkaPartitionSplit]) -> None:
        """Begins to fetch the splits from where they are."""
        client = kafka_client()
        wanted = []
        for split in splits:
            if split.stopping_offset is not None and split.offset >= split.stopping_offset:
                self._ended.append(split.split_id)
                continue
            partition = _Partition(split)
            self._partitions[split.topic, split.partition] = partition
            self._topics.add(split.topic)
            self._unheard.add(partition)
            self._register(partition)
            wanted.append(client.TopicPartition(split.topic, split.partition, split.offset))
        if wanted:
            self._do(lambda: self._consumer.incremental_assign(wanted), "assign partitions")
        self._last_data = time.monotonic()
        self._ask_leaders_until = self._last_data + _ASK_LEADERS_FOR_S
        self._ask_for_leaders()

    def notify_no_more_splits(self) -> None:
        """The reader ends with the last of its splits."""
        self._no_more_splits = True

    def handle_source_event(self, event: Any) -> None:
        """The first splits have been given out."""
        self._has_first_splits = self._has_first_splits or isinstance(event, DiscoveryFinished)

    def snapshot_state(self, checkpoint_id: int) -> list[KafkaPartitionSplit]:
        """All splits with their positions, which are also kept to be committed."""
        splits = [partition.snapshot() for partition in self._partitions.values()]
        if self._commits is not None:
            self._commits.snapshot(checkpoint_id, splits)
        return splits

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Commits the checkpoint's offsets to the consumer group."""
        if self._commits is not None:
            self._commits.complete(checkpoint_id)

    def pause_or_resume_splits(self, to_pause: Collection[str], to_resume: Collection[str]) -> None:
        """Pauses splits, which drops what was fetched and not emitted, or resumes them where they were."""
        paused = [each for each in self._partitions.values() if each.split_id in to_pause and not each.paused]
        resumed = [each for each in self._partitions.values() if each.split_id in to_resume and each.paused]
        if paused:
            self._do(lambda: self._consumer.pause(_topic_partitions(paused)), "pause partitions")
        if resumed:
            self._do(lambda: self._consumer.resume(_topic_partitions(resumed)), "resume partitions")
        for partition in paused:
            partition.paused = True
        for partition in resumed:
            partition.paused = False
        self._resumed += [partition for partition in resumed if partition.held]

    # -- reading ------------------------------------------------------------------------------------

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits what has been fetched, partition by partition."""
        status = self._poll(output, max_records)
        if self._has_idle_gaps:
            self._pending_at_poll = self._count_pending()
            if status is InputStatus.NOTHING_AVAILABLE and self._awaits_records():
                return InputStatus.MORE_AVAILABLE
        return status

    def _poll(self, output: ReaderOutput, max_records: int) -> InputStatus:
        self._errors.raise_if_any()
        for split_id in self._ended:
            output.release_split(split_id)
        self._ended.clear()
        while self._resumed:
            partition = self._resumed.pop()
            held, partition.held = partition.held, []
            self._emit(held, output)
        if not self._partitions:
            return InputStatus.END_OF_INPUT if self._no_more_splits else InputStatus.NOTHING_AVAILABLE
        messages = self._consume(max_records)
        if messages:
            self._last_data = time.monotonic()
            self._emit(messages, output)
        elif self._unheard and self._ask_leaders_at <= time.monotonic() <= self._ask_leaders_until:
            self._ask_for_leaders()
        self._errors.raise_if_any()
        if len(messages) >= max_records or not self._partitions:
            return InputStatus.MORE_AVAILABLE
        return InputStatus.NOTHING_AVAILABLE

    def available_at(self) -> float | None:
        """Soon after records came, and ever later while none come; an epoch only for this is rare."""
        now = time.monotonic()
        idle = now - self._last_data
        if self._has_idle_gaps and self._pending_at_poll == 0:
            return now + min(max(idle, _MIN_EPOCH_PAUSE_S), _MAX_EPOCH_PAUSE_S) if self._partitions else None
        if not self._partitions and not self._has_idle_gaps:
            return None
        return now + min(max(idle * _PAUSE_PER_IDLE, _MIN_PAUSE_S), _MAX_PAUSE_S)

    def pending_records(self) -> int | None:
        """How far the ends of the partitions are away; one where nothing is known yet.

        In epochs, at the last poll: while records keep coming there is never a moment without any.
        """
        return self._pending_at_poll if self._has_idle_gaps else self._count_pending()

    def close(self) -> None:
        """Closes the consumer when its commits are done, but waits for them a moment only."""
        if self._commits is not None:
            has_ended = self._no_more_splits and not self._partitions
            self._commits.flush(_LAST_COMMITS_TIMEOUT_S if has_ended else _CLOSE_TIMEOUT_S)
        self._errors.close()
        closing = threading.Thread(target=self._consumer.close, name="kafka-consumer-close", daemon=True)
        closing.start()
        closing.join(_CLOSE_TIMEOUT_S)
        if closing.is_alive():
            _log.warning("The Kafka consumer is still waiting for brokers to take its commits; it closes by itself.")

    def _consume(self, max_records: int) -> list[Any]:
        # in an epoch no other task needs the thread, and a pause would end the epoch
        wait = _EPOCH_WAIT_S if self._has_idle_gaps and self._awaits_records() else 0
        try:
            messages: list[Any] = self._consumer.consume(max_records, wait)
        except kafka_client().KafkaException as error:
            raise client_error(error, "read", servers=self._servers) from error
        return messages

    def _ask_for_leaders(self) -> None:
        """Has librdkafka find the brokers of new partitions now.

        It looks for those of partitions that are assigned while it connects once a second only. The answer is not
        waited for.
        """
        self._ask_leaders_at = time.monotonic() + _ASK_LEADERS_S
        for topic in {partition.topic for partition in self._unheard}:
            try:
                self._consumer.list_topics(topic, timeout=0)
            except kafka_client().KafkaException:
                return  # the time is up at once

    def _awaits_records(self) -> bool:
        """Whether records are on their way, and worth waiting for: a broker may be away."""
        if time.monotonic() - self._last_data > _EPOCH_PATIENCE_S:
            return False
        return any(self._pending(partition) for partition in self._partitions.values() if not partition.paused)

    def _emit(self, messages: list[Any], output: ReaderOutput) -> None:
        if not any(map(self._error_of, messages)):
            self._emit_records(messages, output)
            return
        start = 0
        for i, message in enumerate(messages):
            error = message.error()
            if error is not None:
                self._emit_records(messages[start:i], output)
                start = i + 1
                self._handle_event(message, error, output)
        self._emit_records(messages[start:], output)

    def _emit_records(self, messages: list[Any], output: ReaderOutput) -> None:
        """Emits messages without error, a run of one partition at a time."""
        of_run = self._partition_of if len(self._topics) == 1 else _place_of
        for _place, run in groupby(messages, of_run):
            batch = list(run)
            partition = self._partitions.get((batch[0].topic(), batch[0].partition()))
            if partition is None:
                continue  # it has ended meanwhile
            if partition.paused or partition.held:
                partition.held += batch
            else:
                self._emit_run(partition, batch, output)

    def _emit_run(self, partition: _Partition, messages: list[Any], output: ReaderOutput) -> None:
        self._unheard.discard(partition)
        last, stop = messages[-1].offset(), partition.stopping_offset
        ends = False
        partition.position = last + 1
        if stop is not None and last + 1 >= stop:
            ends = True
            partition.position = stop
            messages = [message for message in messages if message.offset() < stop]
        if messages:
            partition.current_offset = messages[-1].offset()
            values, timestamps = self._decoder.decode(messages, partition.split_id, output)
            if values:
                output.collect(partition.split_id, values, timestamps)
        if ends:
            self._finish(partition, output)

    def _handle_event(self, message: Any, error: Any, output: ReaderOutput) -> None:
        partition = self._partitions.get((message.topic(), message.partition()))
        if error.code() != self._end_code:
            self._errors.handle(error, message.topic(), message.partition())
        elif partition is None:
            return
        elif partition.paused or partition.held:
            partition.held.append(message)
        else:
            self._unheard.discard(partition)
            stop = partition.stopping_offset
            # past offsets that no record has
            partition.position = message.offset() if stop is None else min(message.offset(), stop)
            partition.high_at_end = self._high(partition)
            if stop is not None and message.offset() >= stop:
                self._finish(partition, output)

    def _finish(self, partition: _Partition, output: ReaderOutput) -> None:
        del self._partitions[partition.topic, partition.number]
        self._unheard.discard(partition)
        if self._commits is not None:
            self._commits.finish(partition.topic, partition.number, partition.position)
        self._do(lambda: self._consumer.incremental_unassign(_topic_partitions([partition])), "end a partition")
        output.release_split(partition.split_id)

    def _read_topics(self) -> set[str]:
        return {partition.topic for partition in self._partitions.values()}

    def _do(self, call: Any, doing: str) -> None:
        try:
            call()
        except kafka_client().KafkaException as error:
            raise client_error(error, doing, servers=self._servers) from error

    # -- figures ------------------------------------------------------------------------------------

    def _high(self, partition: _Partition) -> int:
        """The end of the partition at the last fetch, negative if there was none."""
        wanted = kafka_client().TopicPartition(partition.topic, partition.number)
        offsets = self._consumer.get_watermark_offsets(wanted, cached=True)
        return -1 if offsets is None else int(offsets[1])

    def _count_pending(self) -> int:
        if self._has_idle_gaps and not self._has_first_splits and not self._no_more_splits:
            return 1
        return sum(self._pending(partition) for partition in self._partitions.values())

    def _pending(self, partition: _Partition) -> int:
        high = self._high(partition)
        if high < 0:
            return 0 if partition.high_at_end is not None else 1
        if high == partition.high_at_end:
            return 0
        return max(min(high, partition.stopping_offset or high) - partition.position, 0)

    def _register(self, partition: _Partition) -> None:
        prefix = f"KafkaSourceReader.topic.{partition.topic}.partition.{partition.number}"
        self._metrics.gauge(f"{prefix}.currentOffset", lambda: partition.current_offset)
        commits, place = self._commits, (partition.topic, partition.number)
        if commits is not None:
            self._metrics.gauge(f"{prefix}.committedOffset", lambda: commits.committed.get(place, -1))


def _place_of(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()


def _topic_partitions(partitions: Iterable[_Partition]) -> list[Any]:
    client = kafka_client()
    return [client.TopicPartition(partition.topic, partition.number) for partition in partitions]
