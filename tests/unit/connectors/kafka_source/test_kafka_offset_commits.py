"""Offsets that are committed to the consumer group: those of the newest checkpoint, also when the reader closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from firesteel.connectors.kafka.source.offset_commits import OffsetCommits
from firesteel.connectors.kafka.source.split import KafkaPartitionSplit
from firesteel.runtime.model.metrics import MetricRegistry


class Consumer:
    """Answers a commit at the next poll, with the next of some errors."""

    def __init__(self, *errors: int | None):
        self.errors = list(errors)
        self.commits: list[int] = []
        self.on_commit: Callable[[Any, list[Any]], None] = lambda _error, _partitions: None
        self._sent: list[TopicPartition] | None = None

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.commits.append(offsets[0].offset)
        self._sent = offsets

    def poll(self, _timeout: float) -> None:
        sent, self._sent = self._sent, None
        if sent is not None and self.errors:
            error = self.errors.pop(0)
            self.on_commit(None if error is None else KafkaError(error), sent)


def commits_of(consumer: Consumer, *checkpoints: int) -> OffsetCommits:
    commits = OffsetCommits(MetricRegistry())
    commits.use(consumer)
    consumer.on_commit = commits.answered
    for checkpoint in checkpoints:
        commits.snapshot(checkpoint, [KafkaPartitionSplit("t", 0, 10 * checkpoint)])
        commits.complete(checkpoint)
    return commits


def test_a_flush_waits_for_the_answer() -> None:
    commits = commits_of(Consumer(None), 1)
    assert commits.committed == {}
    commits.flush(60)
    assert commits.committed == {("t", 0): 10}


def test_a_flush_tries_again_what_failed_for_a_moment() -> None:
    consumer = Consumer(KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, None)
    commits = commits_of(consumer, 1)
    commits.flush(60)
    assert consumer.commits == [10, 10, 10]
    assert commits.committed == {("t", 0): 10}


def test_a_flush_commits_the_newest() -> None:
    consumer = Consumer(KafkaError.COORDINATOR_NOT_AVAILABLE, None)
    commits = commits_of(consumer, 1, 2)
    assert consumer.commits == [10], "one at a time"
    commits.flush(60)
    assert consumer.commits == [10, 20]
    assert commits.committed == {("t", 0): 20}


def test_what_is_refused_is_not_tried_again() -> None:
    consumer = Consumer(KafkaError.GROUP_AUTHORIZATION_FAILED)
    commits_of(consumer, 1).flush(60)
    assert consumer.commits == [10]


@pytest.mark.parametrize("checkpoints", [(), (1,)])
def test_a_flush_ends_without_an_answer(checkpoints: tuple[int, ...]) -> None:
    commits_of(Consumer(), *checkpoints).flush(0)
