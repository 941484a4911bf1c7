"""Factories of sources and sinks, found by the option ``connector`` of a table."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.sink import DynamicTableSink
from firesteel.table.connector.source import DynamicTableSource
from firesteel.types.logical import RowType

__all__ = [
    "BUILT_IN",
    "DynamicTableFactory",
    "FactoryContext",
    "check_options",
    "find_factory",
    "register_factory",
]

BUILT_IN: dict[str, str] = {
    "blackhole": "firesteel.table.connectors.blackhole",
    "datagen": "firesteel.table.connectors.datagen",
    "delta": "firesteel.table.connectors.delta",
    "filesystem": "firesteel.table.connectors.filesystem",
    "iceberg": "firesteel.table.connectors.iceberg",
    "jdbc": "firesteel.table.connectors.postgres.jdbc",
    "kafka": "firesteel.table.connectors.kafka",
    "nexmark": "firesteel.table.connectors.nexmark",
    "postgres-cdc": "firesteel.table.connectors.postgres.cdc",
    "print": "firesteel.table.connectors.print",
    "spark": "firesteel.table.environment.spark_tables",
    "upsert-kafka": "firesteel.table.connectors.kafka.upsert",
}
"""The module of each connector; its ``FACTORY`` is the factory."""

_registered: dict[str, DynamicTableFactory] = {}


@dataclass(frozen=True)
class FactoryContext:
    """The table for which a source or a sink is created."""

    identifier: ObjectIdentifier
    schema: ResolvedSchema
    options: Mapping[str, str]
    """All options of the table, hints included, without those that all connectors have."""
    partition_keys: tuple[str, ...] = ()
    configuration: Configuration = field(default_factory=Configuration)
    is_temporary: bool = False
    is_streaming: bool = True

    @property
    def physical_type(self) -> RowType:
        """The physical columns."""
        return self.schema.to_physical_row_data_type()


class DynamicTableFactory:
    """Creates sources and sinks of a connector. The one that cannot be created raises ValidationError."""

    identifier: str
    required_options: Iterable[str] = ()
    optional_options: Iterable[str] = ()
    """Option names; one that ends with ``.`` or contains ``#`` stands for all that begin so (``fields.#.min``)."""

    def create_source(self, context: FactoryContext) -> DynamicTableSource:
        """The source of a table."""
        raise ValidationError(
            f"Connector '{self.identifier}' can only be used as a sink. It cannot be used as a source."
        )

    def create_sink(self, context: FactoryContext) -> DynamicTableSink:
        """The sink of a table."""
        raise ValidationError(
            f"Connector '{self.identifier}' can only be used as a source. It cannot be used as a sink."
        )


def register_factory(factory: DynamicTableFactory) -> None:
    """Adds a connector of a program."""
    _registered[factory.identifier] = factory


def find_factory(context: FactoryContext, connector: str | None) -> DynamicTableFactory:
    """The factory of a connector, after a check of the options of the table."""
    if connector is None:
        raise ValidationError(
            f"Table options do not contain an option key 'connector' for discovering a connector: "
            f"{context.identifier.as_summary_string()}.",
            hint="Add 'connector' = '…' to WITH (…).",
        )
    factory: Any = _registered.get(connector)
    if factory is None and connector in BUILT_IN:
        factory = importlib.import_module(BUILT_IN[connector]).FACTORY
    if factory is None:
        known = sorted({*BUILT_IN, *_registered})
        near = difflib.get_close_matches(connector, known, 1)
        raise ValidationError(
            f"Could not find any factory for identifier '{connector}'. Available connectors: {', '.join(known)}.",
            hint=f"Did you mean '{near[0]}'?" if near else None,
        )
    check_options(factory.identifier, context.options, factory.required_options, factory.optional_options)
    return factory  # type: ignore[no-any-return]


def check_options(name: str, options: Mapping[str, str], required: Iterable[str], optional: Iterable[str]) -> None:
    """Raises an error for options that are missing, and for those that nothing reads."""
    required, optional = tuple(required), tuple(optional)
    missing = [key for key in required if key not in options]
    if missing:
        raise ValidationError(
            "One or more required options are missing.\n\nMissing required options are:\n\n"
            + "\n".join(sorted(missing))
        )
    known = {*required, *optional, "property-version"}
    prefixes = tuple(key.split("#")[0] for key in known if "#" in key or key.endswith("."))
    unknown = sorted(key for key in options if key not in known and not (prefixes and key.startswith(prefixes)))
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, 1)
        raise ValidationError(
            f"Unsupported options found for '{name}'.\n\nUnsupported options:\n\n"
            + "\n".join(unknown)
            + "\n\nSupported options:\n\n"
            + "\n".join(sorted({"connector", *known})),
            hint=f"Did you mean '{near[0]}'?" if near else None,
        )
