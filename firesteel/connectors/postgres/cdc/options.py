"""The settings of change data capture."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.postgres.cdc.change_record import ChangelogMode
from firesteel.connectors.postgres.connection import PostgresConnectionOptions

__all__ = ["NO_PLACEHOLDER", "CdcOptions", "StartupMode", "StartupOptions"]

NO_PLACEHOLDER = "__no_placeholder__"
"""Stands for: there is none, an unavailable value is an error."""

_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}\Z")


class StartupMode(Enum):
    """Where a capture begins."""

    INITIAL = "initial"
    SNAPSHOT = "snapshot"
    LATEST_OFFSET = "latest-offset"
    COMMITTED_OFFSETS = "committed-offset"


@dataclass(frozen=True)
class StartupOptions:
    """Where a capture begins that has no checkpoint to go on from."""

    mode: StartupMode

    @staticmethod
    def initial() -> StartupOptions:
        """Reads the tables first, then all changes since."""
        return StartupOptions(StartupMode.INITIAL)

    @staticmethod
    def snapshot() -> StartupOptions:
        """Reads the tables and ends. Each chunk of a table is read as it is at that time."""
        return StartupOptions(StartupMode.SNAPSHOT)

    @staticmethod
    def latest() -> StartupOptions:
        """Only changes from now on."""
        return StartupOptions(StartupMode.LATEST_OFFSET)

    @staticmethod
    def committed_offset() -> StartupOptions:
        """Changes from where the existing slot has been read up to."""
        return StartupOptions(StartupMode.COMMITTED_OFFSETS)


@dataclass(frozen=True)
class CdcOptions:
    """All settings of a capture."""

    connection: PostgresConnectionOptions
    schema_list: tuple[str, ...]
    table_list: tuple[str, ...]
    slot_name: str = "firesteel"
    publication_name: str = "firesteel_publication"
    publication_autocreate_mode: str = "filtered"
    startup: StartupOptions = field(default_factory=StartupOptions.initial)
    changelog_mode: str = ChangelogMode.ALL
    split_size: int = 8096
    fetch_size: int = 1024
    connect_max_retries: int = 3
    slot_creation_timeout_s: float = 300.0
    heartbeat_interval_s: float = 10.0
    lsn_commit_checkpoints_delay: int = 3
    close_idle_readers: bool = True
    schema_change_behavior: str = "exception"
    truncate_behavior: str = "exception"
    unavailable_value: Any = NO_PLACEHOLDER

    def __post_init__(self) -> None:
        _choice("changelog_mode", self.changelog_mode, ("all", "upsert"))
        _choice("publication_autocreate_mode", self.publication_autocreate_mode, ("filtered", "all_tables", "disabled"))
        _choice("schema_change_behavior", self.schema_change_behavior, ("exception", "evolve", "ignore"))
        _choice("truncate_behavior", self.truncate_behavior, ("exception", "ignore"))
        if not self.table_list and not self.schema_list:
            raise InvalidProgramError(
                "PostgresCdcSource: no table is named.", hint='Name them: table_list("public.orders").'
            )
        for pattern in (*self.schema_list, *self.table_list):
            try:
                re.compile(pattern)
            except re.error as error:
                raise InvalidProgramError(
                    f"PostgresCdcSource: {pattern!r} is not a regular expression: {error}."
                ) from error
        if not _SLOT_NAME.match(self.slot_name):
            raise InvalidProgramError(
                f"PostgresCdcSource: {self.slot_name!r} is not a valid name of a replication slot.",
                hint="Small letters, digits and underscores, at most 63.",
            )
        for name in ("split_size", "fetch_size", "slot_creation_timeout_s", "heartbeat_interval_s"):
            if getattr(self, name) <= 0:
                raise InvalidProgramError(f"PostgresCdcSource: {name} must be positive.")
        for name in ("connect_max_retries", "lsn_commit_checkpoints_delay"):
            if getattr(self, name) < 0:
                raise InvalidProgramError(f"PostgresCdcSource: {name} must not be negative.")

    @property
    def reads_tables(self) -> bool:
        """Whether the tables are read before the log."""
        return self.startup.mode in (StartupMode.INITIAL, StartupMode.SNAPSHOT)

    @property
    def reads_log(self) -> bool:
        """Whether the log is read at all."""
        return self.startup.mode is not StartupMode.SNAPSHOT


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidProgramError(
            f"PostgresCdcSource: {value!r} is not a value of {name}.", hint=f"It is one of {', '.join(choices)}."
        )
