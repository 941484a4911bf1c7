"""Tells the consumer group how far a reader has come, once a checkpoint with these positions is complete."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from firesteel.connectors.kafka.client_errors import kafka_client
from firesteel.connectors.kafka.split import KafkaPartitionSplit

__all__ = ["OffsetCommits"]

_log = logging.getLogger(__name__)


class OffsetCommits:
    """Offsets by checkpoint, until they are committed. No record depends on it: a commit that fails is logged.

    The offset of a split that has ended is committed with the next checkpoint, and again until that went well.
    """

    def __init__(self, metrics: Any) -> None:
        self._by_checkpoint: dict[int, dict[tuple[str, int], int]] = {}
        self._finished: dict[tuple[str, int], int] = {}
        self._succeeded = metrics.counter("KafkaSourceReader.commitsSucceeded")
        self._failed = metrics.counter("KafkaSourceReader.commitsFailed")
        self._is_failing = False
        self.committed: dict[tuple[str, int], int] = {}
        """What the group has, as far as this reader knows."""

    def finish(self, topic: str, partition: int, offset: int) -> None:
        """A split has ended there."""
        self._finished[topic, partition] = offset

    def snapshot(self, checkpoint_id: int, splits: Iterable[KafkaPartitionSplit]) -> None:
        """Remembers the positions of a checkpoint."""
        offsets = {(split.topic, split.partition): split.offset for split in splits}
        self._by_checkpoint[checkpoint_id] = {**self._finished, **offsets}

    def complete(self, checkpoint_id: int, consumer: Any) -> None:
        """Commits the offsets of a checkpoint, without waiting for the answer."""
        offsets = self._by_checkpoint.get(checkpoint_id)
        self._by_checkpoint = {
            earlier: each for earlier, each in self._by_checkpoint.items() if earlier > checkpoint_id
        }
        if not offsets:
            return
        client = kafka_client()
        wanted = [client.TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        try:
            consumer.commit(offsets=wanted, asynchronous=True)
        except client.KafkaException as error:
            self.answered(error.args[0], wanted)

    def answered(self, error: Any, partitions: list[Any]) -> None:
        """The group's coordinator has answered; called during a poll of the consumer."""
        failure = error or next((each.error for each in partitions if each.error is not None), None)
        if failure is not None:
            self._failed.inc()
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
