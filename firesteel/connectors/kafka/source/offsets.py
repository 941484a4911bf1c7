"""Offsets initializers: where a Kafka source starts in each partition, and where it stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Protocol

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.client_errors import OffsetOutOfRangeError
from firesteel.connectors.kafka.topics import KafkaTopicPartition

__all__ = ["KafkaOffsetResetStrategy", "KafkaOffsetsInitializer", "PartitionOffsetsRetriever"]

Offsets = dict[KafkaTopicPartition, int]


class KafkaOffsetResetStrategy(Enum):
    """Where to read on where the offset to read from does not exist."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class PartitionOffsetsRetriever(Protocol):
    """What an initializer can ask of the cluster; a call may take its time, up to a deadline."""

    group_id: str | None
    """The consumer group of the source, if it has one."""

    def committed_offsets(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """What the group has committed; a partition of which nothing was is left out."""
        ...

    def beginning_offsets(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """The first offset of each partition."""
        ...

    def end_offsets(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """The offset after the last record of each partition."""
        ...

    def offsets_for_times(self, timestamps: Mapping[KafkaTopicPartition, int]) -> Offsets:
        """The first offset whose record is not older; a partition without one is left out."""
        ...


class KafkaOffsetsInitializer(ABC):
    """Finds the offset of each partition to start from or to stop at; asked once for each partition.

    Made with ``earliest``, ``latest``, ``committed_offsets``, ``timestamp`` or ``offsets``; or subclass it. All offsets
    are looked up when the source finds the partition, by its enumerator, and are part of the checkpoints from then on.
    """

    @abstractmethod
    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        """The offset of each of the partitions."""

    def get_auto_offset_reset_strategy(self) -> KafkaOffsetResetStrategy:
        """What to do when a starting offset is out of range."""
        return KafkaOffsetResetStrategy.EARLIEST

    def validate(self, properties: Mapping[str, Any]) -> None:  # noqa: B027 - optional
        """Fails if the properties of the source lack something; called when the source is built."""

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first offset of each partition."""
        return _Earliest()

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The offset after the last record that a partition has when the source finds it."""
        return _Latest()

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """The committed offsets of the consumer group; for partitions without, those of the strategy."""
        return _Committed(offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record of each partition that is not older than the timestamp, or the end if there is none."""
        return _Timestamp(timestamp)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """The given offsets; for other partitions the committed ones of the group, or else those of the strategy."""
        return _Specified(offsets, offset_reset_strategy)


class _Earliest(KafkaOffsetsInitializer):
    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        return retriever.beginning_offsets(partitions)

    def __repr__(self) -> str:
        return "earliest"


class _Latest(KafkaOffsetsInitializer):
    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        return retriever.end_offsets(partitions)

    def get_auto_offset_reset_strategy(self) -> KafkaOffsetResetStrategy:
        return KafkaOffsetResetStrategy.LATEST

    def __repr__(self) -> str:
        return "latest"


class _Timestamp(KafkaOffsetsInitializer):
    def __init__(self, timestamp: int):
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or timestamp < 0:
            raise InvalidProgramError(f"A timestamp is a number of milliseconds, not {timestamp!r}.")
        self._timestamp = timestamp

    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        # the ends first: a record written in between must not be skipped
        ends = retriever.end_offsets(partitions)
        return {**ends, **retriever.offsets_for_times(dict.fromkeys(partitions, self._timestamp))}

    def get_auto_offset_reset_strategy(self) -> KafkaOffsetResetStrategy:
        return KafkaOffsetResetStrategy.LATEST

    def __repr__(self) -> str:
        return f"timestamp {self._timestamp}"


class _WithReset(KafkaOffsetsInitializer):
    """Offsets that may not be known for each partition."""

    def __init__(self, strategy: KafkaOffsetResetStrategy):
        if not isinstance(strategy, KafkaOffsetResetStrategy):
            raise InvalidProgramError(f"The reset strategy is a KafkaOffsetResetStrategy, not {strategy!r}.")
        self._strategy = strategy

    def get_auto_offset_reset_strategy(self) -> KafkaOffsetResetStrategy:
        return self._strategy

    def _complete(
        self, known: Offsets, partitions: Collection[KafkaTopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        unknown = [partition for partition in partitions if partition not in known]
        if unknown and retriever.group_id is not None:
            known = {**known, **retriever.committed_offsets(unknown)}
            unknown = [partition for partition in unknown if partition not in known]
        if not unknown:
            return known
        if self._strategy is KafkaOffsetResetStrategy.EARLIEST:
            return {**known, **retriever.beginning_offsets(unknown)}
        if self._strategy is KafkaOffsetResetStrategy.LATEST:
            return {**known, **retriever.end_offsets(unknown)}
        partition = unknown[0]
        group = "" if retriever.group_id is None else f" the group '{retriever.group_id}' has committed none, and"
        raise OffsetOutOfRangeError(
            f"There is no offset for partition {partition.partition} of the topic '{partition.topic}':"
            f"{group} the reset strategy is NONE.",
            code="_NO_OFFSET",
            topic=partition.topic,
            partition=partition.partition,
            hint="Give the KafkaOffsetsInitializer KafkaOffsetResetStrategy.EARLIEST or LATEST.",
        )


class _Committed(_WithReset):
    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        return self._complete({}, partitions, retriever)

    def validate(self, properties: Mapping[str, Any]) -> None:
        if "group.id" not in properties:
            raise InvalidProgramError(
                "Committed offsets are those of a consumer group, and the source has none.", hint="Call set_group_id."
            )

    def __repr__(self) -> str:
        return f"committed offsets, else {self._strategy.name.lower()}"


class _Specified(_WithReset):
    def __init__(self, offsets: Mapping[KafkaTopicPartition, int], strategy: KafkaOffsetResetStrategy):
        super().__init__(strategy)
        for partition, offset in offsets.items():
            if not isinstance(partition, KafkaTopicPartition):
                raise InvalidProgramError(f"Offsets are given by KafkaTopicPartition, not {partition!r}.")
            if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
                raise InvalidProgramError(f"The offset of {partition} is a number from 0 on, not {offset!r}.")
        self._offsets = dict(offsets)

    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        known = {partition: self._offsets[partition] for partition in partitions if partition in self._offsets}
        return self._complete(known, partitions, retriever)

    def __repr__(self) -> str:
        return f"offsets of {len(self._offsets)} partitions, else {self._strategy.name.lower()}"
