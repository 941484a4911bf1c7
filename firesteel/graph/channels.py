"""Which producer subtasks are connected to which consumer subtasks."""

from __future__ import annotations

from firesteel.runtime.partitioner import Partitioner

__all__ = ["connections"]


def connections(partitioner: Partitioner, producers: int, consumers: int) -> list[tuple[int, int]]:
    """All channels of an edge as (producer subtask, consumer subtask), in ascending order.

    FORWARD and RESCALE connect neighbours: with more producers than consumers each producer has one
    consumer, with fewer each consumer has one producer, and shares differ by at most one. All others
    connect everybody.

    >>> from firesteel.runtime.partitioner import RescalePartitioner
    >>> connections(RescalePartitioner(), 2, 4)
    [(0, 0), (0, 1), (1, 2), (1, 3)]
    >>> connections(RescalePartitioner(), 3, 2)
    [(0, 0), (1, 1), (2, 1)]
    """
    if producers < 1 or consumers < 1:
        raise ValueError(f"parallelism must be at least 1, not {producers} and {consumers}")
    if not partitioner.is_pointwise:
        return [(producer, consumer) for producer in range(producers) for consumer in range(consumers)]
    if producers >= consumers:
        return [
            (producer, consumer)
            for consumer in range(consumers)
            for producer in range(consumer * producers // consumers, (consumer + 1) * producers // consumers)
        ]
    return [
        (producer, consumer)
        for producer in range(producers)
        for consumer in range(
            _ceil_div(producer * consumers, producers), _ceil_div((producer + 1) * consumers, producers)
        )
    ]


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)
