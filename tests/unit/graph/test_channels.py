from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.graph.channels import Connections, connections
from firesteel.runtime.model.partitioner import (
    BroadcastPartitioner,
    ForwardPartitioner,
    GlobalPartitioner,
    KeyGroupPartitioner,
    RebalancePartitioner,
    RescalePartitioner,
    ShufflePartitioner,
)

PARALLELISM = st.integers(1, 70)


def pairs(channels: Connections) -> list[tuple[int, int]]:
    return [
        (producer, consumer) for producer in range(channels.producers) for consumer in channels.consumers_of(producer)
    ]


@given(PARALLELISM, PARALLELISM, st.booleans())
def test_producers_consumers_and_numbers_agree(producers: int, consumers: int, pointwise: bool) -> None:
    channels = Connections(producers, consumers, pointwise)
    by_producer = pairs(channels)
    by_consumer = [
        (producer, consumer) for consumer in range(consumers) for producer in channels.producers_of(consumer)
    ]
    assert sorted(by_consumer) == by_producer
    assert [channels.number(*pair) for pair in by_producer] == list(range(len(channels)))


@given(PARALLELISM, PARALLELISM)
def test_rescale_uses_every_subtask_evenly_with_as_few_channels_as_possible(producers: int, consumers: int) -> None:
    channels = pairs(connections(RescalePartitioner(), producers, consumers))
    by_producer = Counter(producer for producer, _ in channels)
    by_consumer = Counter(consumer for _, consumer in channels)
    assert sorted(by_producer) == list(range(producers))
    assert sorted(by_consumer) == list(range(consumers))
    assert len(channels) == len(set(channels)) == max(producers, consumers)
    for counts in (by_producer, by_consumer):
        assert max(counts.values()) - min(counts.values()) <= 1


@given(PARALLELISM, PARALLELISM)
def test_rescale_connects_neighbours(producers: int, consumers: int) -> None:
    channels = pairs(connections(RescalePartitioner(), producers, consumers))
    assert channels == sorted(channels)
    assert [consumer for _, consumer in channels] == sorted(consumer for _, consumer in channels)


@given(PARALLELISM)
def test_forward_connects_each_subtask_with_its_own(parallelism: int) -> None:
    assert pairs(connections(ForwardPartitioner(), parallelism, parallelism)) == [(i, i) for i in range(parallelism)]


@pytest.mark.parametrize(
    "partitioner",
    [
        KeyGroupPartitioner(abs),
        RebalancePartitioner(),
        ShufflePartitioner(),
        BroadcastPartitioner(),
        GlobalPartitioner(),
    ],
    ids=lambda partitioner: partitioner.name,
)
def test_all_others_connect_everybody(partitioner) -> None:
    assert pairs(connections(partitioner, 2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_rescale_splits_as_flink_does() -> None:
    assert pairs(connections(RescalePartitioner(), 5, 3)) == [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2)]
    assert pairs(connections(RescalePartitioner(), 3, 5)) == [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4)]


def test_no_subtasks_is_refused() -> None:
    with pytest.raises(ValueError):
        connections(RescalePartitioner(), 0, 1)
