"""Offset commits to the consumer group, made when a checkpoint completes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

from firesteel.connectors.kafka.client_errors import is_transient, kafka_client
from firesteel.connectors.kafka.source.split import KafkaPartitionSplit

__all__ = ["OffsetCommits"]

_log = logging.getLogger(__name__)

_FLUSH_POLL_S = 0.05


class OffsetCommits:
    """Offsets by checkpoint, until they are committed. No record depends on it: a commit that fails is logged.

    The offset of a split that has ended is committed with the next checkpoint, and again until that went well. While
    one commit is under way the next one waits, and only the newest: brokers may be away for long.
    """

    def __init__(self, metrics: Any) -> None:
        self._consumer: Any = None
        self._waiting: list[Any] = []
        self._is_under_way = False
        self._by_checkpoint: dict[int, dict[tuple[str, int], int]] = {}
        self._finished: dict[tuple[str, int], int] = {}
        self._succeeded = metrics.counter("KafkaSourceReader.commitsSucceeded")
        self._failed = metrics.counter("KafkaSourceReader.commitsFailed")
        self._is_failing = False
        self.committed: dict[tuple[str, int], int] = {}
        """What the group has, as far as this reader knows."""

    def use(self, consumer: Any) -> None:
        """Sets the consumer that commits."""
        self._consumer = consumer

    def finish(self, topic: str, partition: int, offset: int) -> None:
        """A split has ended there."""
        self._finished[topic, partition] = offset

    def snapshot(self, checkpoint_id: int, splits: Iterable[KafkaPartitionSplit]) -> None:
        """Remembers the positions of a checkpoint."""
        offsets = {(split.topic, split.partition): split.offset for split in splits}
        self._by_checkpoint[checkpoint_id] = {**self._finished, **offsets}

    def complete(self, checkpoint_id: int) -> None:
        """Commits the offsets of a checkpoint, without waiting for the answer."""
        offsets = self._by_checkpoint.get(checkpoint_id)
        self._by_checkpoint = {
            earlier: each for earlier, each in self._by_checkpoint.items() if earlier > checkpoint_id
        }
        if not offsets:
            return
        client = kafka_client()
        self._waiting = [client.TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        if not self._is_under_way:
            self.send()

    def flush(self, seconds: float) -> None:
        """Waits until everything is committed, but not for long. A commit that fails meanwhile is tried again.

        A consumer that is closed while it still looks for its group's coordinator drops commits without a word.
        """
        end = time.monotonic() + seconds
        while self._is_under_way or self._waiting:
            if not self._is_under_way:
                self.send()
            self._consumer.poll(_FLUSH_POLL_S)
            if time.monotonic() >= end:
                return

    def send(self) -> None:
        """Commits what waits for it now."""
        wanted, self._waiting = self._waiting, []
        if wanted:
            self._is_under_way = True
            try:
                self._consumer.commit(offsets=wanted, asynchronous=True)
            except kafka_client().KafkaException as error:
                self.answered(error.args[0], wanted)

    def answered(self, error: Any, partitions: list[Any]) -> None:
        """The group's coordinator has answered; called during a poll of the consumer."""
        self._is_under_way = False
        failure = error or next((each.error for each in partitions if each.error is not None), None)
        if failure is not None:
            self._failed.inc()
            if not self._waiting and is_transient(failure):
                partition = kafka_client().TopicPartition
                self._waiting = [partition(each.topic, each.partition, each.offset) for each in partitions]
            level = logging.DEBUG if self._is_failing else logging.WARNING
            self._is_failing = True
            _log.log(level, "Offsets are not committed to the consumer group: %s", failure)
            return
        self._is_failing = False
        self._succeeded.inc()
        for each in partitions:
            place = each.topic, each.partition
            self.committed[place] = each.offset
            if self._finished.get(place) == each.offset:
                del self._finished[place]
        self.send()
