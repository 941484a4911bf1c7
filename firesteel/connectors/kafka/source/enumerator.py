"""Split enumerator of a KafkaSource: discovers partitions, once or periodically, and assigns them to subtasks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.kafka.client_errors import BrokerUnavailableError
from firesteel.connectors.kafka.source.offsets import KafkaOffsetsInitializer
from firesteel.connectors.kafka.source.split import DiscoveryFinished, KafkaPartitionSplit
from firesteel.connectors.kafka.topics import KafkaTopicPartition, Subscriber, split_owner
from firesteel.spi.source import SplitEnumerator, SplitEnumeratorContext

__all__ = ["KafkaEnumeratorState", "KafkaSourceEnumerator", "OffsetLookup", "PartitionDiscovery"]

_log = logging.getLogger(__name__)

CreateMetadata = Callable[[threading.Event], AbstractContextManager[Any]]
"""Creates the metadata client; the event signals that the result is no longer needed."""


@dataclass(frozen=True)
class KafkaEnumeratorState:
    """What a checkpoint keeps: which partitions readers have, or had, and those that wait for theirs."""

    assigned: frozenset[KafkaTopicPartition]
    pending: tuple[KafkaPartitionSplit, ...]
    initial_discovery_finished: bool
    """From then on what is found is new, and read from its beginning."""


@dataclass(frozen=True)
class OffsetLookup:
    """Makes splits of partitions: looks up where each starts and stops. Called in another thread."""

    create_metadata: CreateMetadata
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None
    abandoned: threading.Event

    def splits(self, partitions: Collection[KafkaTopicPartition], metadata: Any) -> list[KafkaPartitionSplit]:
        """The splits of these partitions, in order."""
        ordered = sorted(partitions, key=lambda partition: (partition.topic, partition.partition))
        if not ordered:
            return []
        starting = self.starting.get_partition_offsets(ordered, metadata)
        stopping = {} if self.stopping is None else self.stopping.get_partition_offsets(ordered, metadata)
        return [
            KafkaPartitionSplit(partition.topic, partition.partition, starting[partition], stopping.get(partition))
            for partition in ordered
        ]

    def of(self, partitions: Collection[KafkaTopicPartition]) -> Callable[[], list[KafkaPartitionSplit]]:
        """The call that gives the splits of these partitions."""

        def look_up() -> list[KafkaPartitionSplit]:
            with self.create_metadata(self.abandoned) as metadata:
                return self.splits(partitions, metadata)

        return look_up


@dataclass(frozen=True)
class PartitionDiscovery:
    """Finds the partitions there are. Called in another thread."""

    create_metadata: CreateMetadata
    subscriber: Subscriber
    abandoned: threading.Event

    def partitions(self) -> set[KafkaTopicPartition]:
        """All partitions to read now."""
        with self.create_metadata(self.abandoned) as metadata:
            return self.subscriber.partitions(metadata)

    def first_splits(self, lookup: OffsetLookup) -> Callable[[], list[KafkaPartitionSplit]]:
        """The call that gives all partitions as splits, for the first time."""

        def discover() -> list[KafkaPartitionSplit]:
            with self.create_metadata(self.abandoned) as metadata:
                return lookup.splits(self.subscriber.partitions(metadata), metadata)

        return discover


class KafkaSourceEnumerator(SplitEnumerator[KafkaPartitionSplit]):
    """Assigns each partition to one subtask, which keeps it; readers send no requests.

    1. The first discovery finds the partitions, and for each where it starts and stops, in one call. If it fails the
       job fails.
    2. Later ones, at the interval, find partitions that are new. They are read from their beginning: they had no
       records when the job started. If the cluster cannot be asked, this waits until the next time.
    3. A source that stops, and looks for nothing new, signals its readers that there are no more splits.

    A partition is known from when its split was made, and its offsets with it: a checkpoint keeps both.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext,
        discovery: PartitionDiscovery,
        initial: OffsetLookup,
        later: OffsetLookup,
        *,
        interval_ms: int | None,
        ends: bool,
        is_bounded: bool,
        abandoned: threading.Event,
        restored: KafkaEnumeratorState | None = None,
    ) -> None:
        self._context = context
        self._discovery = discovery
        self._initial = initial
        self._later = later
        self._interval_ms = interval_ms
        self._ends = ends
        self._is_bounded = is_bounded
        self._abandoned = abandoned
        self._assigned: set[KafkaTopicPartition] = set(restored.assigned) if restored else set()
        self._pending: dict[KafkaTopicPartition, KafkaPartitionSplit] = {}
        self._initial_discovery_finished = restored is not None and restored.initial_discovery_finished
        self._no_more_splits = False
        self._has_looked = False
        """Whether all that was there when this enumerator started has been found."""
        self._asking: dict[int, None] = {}
        self._looking_up: set[KafkaTopicPartition] = set()
        self._removed: set[KafkaTopicPartition] = set()
        self._add(restored.pending if restored else ())

    def start(self) -> None:
        """Begins to look for partitions, in another thread."""
        if not self._initial_discovery_finished:
            self._context.call_async(self._discovery.first_splits(self._initial), self._handle_first_splits)
        elif self._is_bounded:
            self._no_more_splits = self._has_looked = True
        else:
            self._look_for_new(0)

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Splits are assigned without requests; a request is answered when the reader has all there were."""
        self._asking[subtask] = None
        self._answer()

    def add_reader(self, subtask: int) -> None:
        """Gives the reader what waits for it."""
        self._assign([subtask])

    def add_splits_back(self, splits: list[KafkaPartitionSplit], subtask: int) -> None:
        """Keeps the splits for when the reader has started again."""
        self._add(splits)
        self._assign([reader for reader in self._context.registered_readers() if reader == subtask])

    def snapshot_state(self, checkpoint_id: int) -> KafkaEnumeratorState:
        """What is assigned, and what is not yet."""
        return KafkaEnumeratorState(
            frozenset(self._assigned), tuple(self._pending.values()), self._initial_discovery_finished
        )

    def close(self) -> None:
        """Lets calls under way end early."""
        self._abandoned.set()

    # -- what other threads found -------------------------------------------------------------------

    def _handle_first_splits(self, splits: list[KafkaPartitionSplit] | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert splits is not None
        self._initial_discovery_finished = True
        self._add(splits)
        if self._interval_ms is not None:
            self._look_for_new(self._interval_ms)
        else:
            self._no_more_splits = self._ends
        self._finish_discovery()

    def _look_for_new(self, initial_delay_ms: int) -> None:
        self._context.call_async(
            self._discovery.partitions,
            self._handle_partitions,
            initial_delay_ms=initial_delay_ms,
            period_ms=self._interval_ms,
        )

    def _handle_partitions(self, found: set[KafkaTopicPartition] | None, error: Exception | None) -> None:
        if error is not None:
            self._wait_or_fail(error)
            return
        assert found is not None
        known = self._assigned | self._pending.keys()
        removed = known - found
        if removed - self._removed:
            _log.warning("Partitions that were read no longer exist: %s", ", ".join(sorted(map(str, removed))))
        self._removed = removed
        new = found - known - self._looking_up
        if new:
            _log.info("Found new partitions: %s", ", ".join(sorted(map(str, new))))
            self._looking_up |= new
            self._context.call_async(
                self._later.of(new), lambda splits, failure: self._handle_new_splits(new, splits, failure)
            )
        elif not self._has_looked:
            self._handle_new_splits(new, [], None)

    def _handle_new_splits(
        self,
        partitions: Collection[KafkaTopicPartition],
        splits: list[KafkaPartitionSplit] | None,
        error: Exception | None,
    ) -> None:
        self._looking_up.difference_update(partitions)
        if error is not None:
            self._wait_or_fail(error)
            return
        assert splits is not None
        self._add(splits)
        self._no_more_splits = self._ends and self._interval_ms is None
        self._finish_discovery()

    def _wait_or_fail(self, error: Exception) -> None:
        # readers wait for a broker that is away, so a search for what is new can wait too, if there is a next time
        if not isinstance(error, BrokerUnavailableError) or self._interval_ms is None:
            raise error
        _log.warning("New partitions could not be looked for, and will be again: %s", error.message)

    # -- assignment ---------------------------------------------------------------------------------

    def _add(self, splits: Collection[KafkaPartitionSplit]) -> None:
        for split in splits:
            self._pending[split.topic_partition] = split

    def _finish_discovery(self) -> None:
        self._has_looked = True
        self._assign(self._context.registered_readers())
        self._answer()

    def _answer(self) -> None:
        # where there are no more splits, the signal does it
        if self._has_looked and not self._no_more_splits:
            for reader in self._asking:
                self._context.send_event_to_reader(reader, DiscoveryFinished())
            self._asking.clear()

    def _assign(self, readers: Collection[int]) -> None:
        parallelism = self._context.current_parallelism()
        for partition, split in list(self._pending.items()):
            owner = split_owner(split.topic, split.partition, parallelism)
            if owner in readers:
                del self._pending[partition]
                self._assigned.add(partition)
                self._context.assign_split(split, owner)
        if self._no_more_splits:
            for reader in readers:
                self._context.signal_no_more_splits(reader)
