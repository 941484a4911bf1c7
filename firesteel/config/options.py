"""All configuration options, with Flink's keys and defaults. Each is declared in the module of its owner."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from firesteel.config import (
    checkpointing_options,
    cluster_options,
    exchange_options,
    log_options,
    network_options,
    pipeline_options,
    python_options,
    restart_options,
    rocksdb_options,
    s3_options,
    scheduler_options,
    table_options,
)
from firesteel.config.option import ConfigOption

__all__ = ["OWNERS", "all_options", "declared_options"]

OWNERS: tuple[ModuleType, ...] = (
    checkpointing_options,
    cluster_options,
    exchange_options,
    log_options,
    network_options,
    pipeline_options,
    python_options,
    restart_options,
    rocksdb_options,
    s3_options,
    scheduler_options,
    table_options,
)
"""The modules that declare options: all of this package whose name ends in ``_options``."""


def declared_options(owner: ModuleType) -> dict[str, ConfigOption[Any]]:
    """The options that a module declares, by the name of their constant."""
    return {name: value for name, value in vars(owner).items() if isinstance(value, ConfigOption)}


def all_options() -> tuple[ConfigOption[Any], ...]:
    """Every option there is, in order of key."""
    options = (option for owner in OWNERS for option in declared_options(owner).values())
    return tuple(sorted(options, key=lambda option: option.key))
