"""State time-to-live (TTL): expiration, visibility and cleanup."""

from __future__ import annotations

from abc import ABC
from enum import Enum
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, to_millis

__all__ = ["StateTtlConfig"]


class StateTtlConfig:
    """Lets the values of a state expire; made with ``StateTtlConfig.new_builder(Time.hours(1)).build()``."""

    class UpdateType(Enum):
        """The accesses that reset the time-to-live."""

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether a value that expired but still exists may be read."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(Enum):
        """The time characteristic of the time-to-live."""

        ProcessingTime = 0

    def __init__(
        self,
        update_type: StateTtlConfig.UpdateType,
        state_visibility: StateTtlConfig.StateVisibility,
        ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic,
        ttl: Any,
        cleanup_strategies: StateTtlConfig.CleanupStrategies,
    ):
        self.ttl_millis = to_millis(ttl)
        if self.ttl_millis <= 0:
            raise InvalidProgramError(
                f"The time-to-live of a state must be positive, got {self.ttl_millis} ms.",
                hint="Leave enable_time_to_live out for state that never expires.",
            )
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = ttl
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Any) -> StateTtlConfig.Builder:
        """Starts a configuration; ttl is a Time or a Duration."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        """The accesses that reset the time-to-live."""
        return self._update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """Whether expired values may be read."""
        return self._state_visibility

    def get_ttl(self) -> Any:
        """The time-to-live, as it was given."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        """Which clock is used."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether values expire at all."""
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        """How expired values are removed."""
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig(ttl={self.ttl_millis} ms, update_type={self._update_type.name}, "
            f"state_visibility={self._state_visibility.name})"
        )

    class Builder:
        """Collects the settings of a :class:`StateTtlConfig`."""

        def __init__(self, ttl: Any):
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """The accesses that reset the time-to-live."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Writing resets the time-to-live (the default)."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Reading and writing reset the time-to-live."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> StateTtlConfig.Builder:
            """Whether expired values may be read."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Expired values may be read as long as they exist."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Expired values are never read (the default)."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """The time characteristic of the time-to-live."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """The wall clock measures the life of a value (the default)."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Omits expired values from full snapshots."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = strategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Checks a few entries with each state access, or with each record."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.INCREMENTAL_CLEANUP] = strategies.IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Any = None
        ) -> StateTtlConfig.Builder:
            """Removes expired values in RocksDB's compaction."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                strategies.RocksdbCompactFilterCleanupStrategy(query_time_after_num_entries, periodic_compaction_time)
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Removes expired values only as explicitly configured, or when they are read."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Any) -> StateTtlConfig.Builder:
            """Replaces the time-to-live."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """The configuration."""
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(dict(self._strategies), self._is_cleanup_in_background),
            )

    class CleanupStrategies:
        """How expired values are removed."""

        class Strategies(Enum):
            """The ways there are."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy(ABC):  # noqa: B024 - a marker, as in Flink
            """Root of the strategies."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A strategy without settings."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """Checks a few entries at a time."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool):
                if cleanup_size <= 0:
                    raise InvalidProgramError(
                        "The number of state entries cleaned up at a time must be positive, "
                        f"got cleanup_size={cleanup_size}."
                    )
                self._cleanup_size = cleanup_size
                self._run_cleanup_for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                """The number of entries that are checked."""
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Whether each record, not only each state access, pays for it."""
                return self._run_cleanup_for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """Drops expired values while RocksDB compacts."""

            def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Any = None):
                self._query_time_after_num_entries = query_time_after_num_entries
                self._periodic_compaction_time = periodic_compaction_time

            def get_query_time_after_num_entries(self) -> int:
                """The number of entries after which the filter updates its current time."""
                return self._query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Any:
                """The maximum time between compactions of a file; default: 30 days."""
                return self._periodic_compaction_time or Duration.of_days(30)

        EMPTY_STRATEGY = EmptyCleanupStrategy()

        def __init__(
            self,
            strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ],
            is_cleanup_in_background: bool,
        ):
            self._strategies = strategies
            self._is_cleanup_in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Whether the backend's own cleanup runs where none is configured."""
            return self._is_cleanup_in_background

        def in_full_snapshot(self) -> bool:
            """Whether full snapshots leave expired values out."""
            return StateTtlConfig.CleanupStrategies.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None:
            """The incremental cleanup, or None."""
            cls = StateTtlConfig.CleanupStrategies
            found = self._strategies.get(cls.Strategies.INCREMENTAL_CLEANUP)
            if isinstance(found, cls.IncrementalCleanupStrategy):
                return found
            return cls.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None:
            """The cleanup during compaction, or None."""
            cls = StateTtlConfig.CleanupStrategies
            found = self._strategies.get(cls.Strategies.ROCKSDB_COMPACTION_FILTER)
            if isinstance(found, cls.RocksdbCompactFilterCleanupStrategy):
                return found
            return cls.RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None
