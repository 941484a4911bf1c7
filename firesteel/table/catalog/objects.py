"""What catalogs hold: databases, tables, views, partitions, functions and models. All are immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from firesteel.config.configuration import Configuration
from firesteel.table.schema import Schema
from firesteel.table.table_schema import TableSchema

__all__ = [
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogModel",
    "CatalogPartition",
    "CatalogPartitionSpec",
    "FunctionLanguage",
    "TableDistribution",
    "TableKind",
]


def _options(options: Mapping[str, str] | None) -> Mapping[str, str]:
    return MappingProxyType(dict(options or {}))


def _as_schema(schema: Schema | TableSchema) -> Schema:
    return schema if isinstance(schema, Schema) else schema.to_schema()


@dataclass(frozen=True)
class CatalogDescriptor:
    """What a catalog is made of: options, as in CREATE CATALOG."""

    catalog_name: str
    configuration: Configuration
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Configuration, comment: str | None = None) -> CatalogDescriptor:
        """A catalog with options."""
        return CatalogDescriptor(catalog_name, configuration, comment)

    @property
    def options(self) -> dict[str, str]:
        """The options as text."""
        return self.configuration.to_dict()


@dataclass(frozen=True)
class CatalogDatabase:
    """A database: properties and a comment."""

    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        """A database with properties and a comment."""
        return CatalogDatabase(_options(properties), comment)

    def get_properties(self) -> dict[str, str]:
        """The properties."""
        return dict(self.properties)

    def get_comment(self) -> str:
        """The comment; empty if there is none."""
        return self.comment or ""

    def copy(self) -> CatalogDatabase:
        """The same; it does not change."""
        return self

    def get_description(self) -> str | None:
        """The comment."""
        return self.comment

    def get_detailed_description(self) -> str | None:
        """The comment."""
        return self.comment


class TableKind(Enum):
    """What a name in a FROM clause can stand for."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    MATERIALIZED_TABLE = "MATERIALIZED_TABLE"


@dataclass(frozen=True)
class TableDistribution:
    """How a table's rows are distributed to buckets."""

    kind: str
    """HASH, RANGE or UNKNOWN."""
    bucket_count: int | None
    bucket_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class CatalogBaseTable:
    """A table, or a view with its query."""

    kind: TableKind
    schema: Schema
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    partition_keys: tuple[str, ...] = ()
    distribution: TableDistribution | None = None
    original_query: str | None = None
    expanded_query: str | None = None

    @staticmethod
    def create_table(
        schema: Schema | TableSchema,
        partition_keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
        distribution: TableDistribution | None = None,
    ) -> CatalogBaseTable:
        """A table; ``properties`` are the options of its WITH clause."""
        return CatalogBaseTable(
            TableKind.TABLE, _as_schema(schema), _options(properties), comment, tuple(partition_keys), distribution
        )

    @staticmethod
    def create_view(
        original_query: str,
        expanded_query: str,
        schema: Schema | TableSchema,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """A view: its query as it was written, and with all names qualified."""
        return CatalogBaseTable(
            TableKind.VIEW,
            _as_schema(schema),
            _options(properties),
            comment,
            original_query=original_query,
            expanded_query=expanded_query,
        )

    @property
    def is_partitioned(self) -> bool:
        """Whether it has partitions."""
        return bool(self.partition_keys)

    def get_options(self) -> dict[str, str]:
        """The options of its WITH clause."""
        return dict(self.options)

    def with_options(self, options: Mapping[str, str]) -> CatalogBaseTable:
        """The same table with these options instead."""
        return replace(self, options=_options(options))

    def get_unresolved_schema(self) -> Schema:
        """The schema as it was declared."""
        return self.schema

    def get_comment(self) -> str:
        """The comment; empty if there is none."""
        return self.comment or ""

    def copy(self) -> CatalogBaseTable:
        """The same; it does not change."""
        return self

    def get_description(self) -> str | None:
        """The comment; empty if there is none."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """What a view is; None for tables."""
        return "This is a catalog view implementation" if self.kind is TableKind.VIEW else None


@dataclass(frozen=True)
class CatalogPartitionSpec:
    """The values of partition columns: ``CatalogPartitionSpec({"day": "2026-01-01"})``."""

    partition_spec: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition_spec", _options(self.partition_spec))

    def get_partition_spec(self) -> dict[str, str]:
        """Columns with their values."""
        return dict(self.partition_spec)

    def __hash__(self) -> int:
        return hash(frozenset(self.partition_spec.items()))

    def __str__(self) -> str:
        values = ", ".join(f"{key}={value}" for key, value in self.partition_spec.items())
        return f"CatalogPartitionSpec{{{{{values}}}}}"


@dataclass(frozen=True)
class CatalogPartition:
    """A partition of a table."""

    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogPartition:
        """A partition with properties and a comment."""
        return CatalogPartition(_options(properties), comment)

    def get_properties(self) -> dict[str, str]:
        """The properties."""
        return dict(self.properties)

    def copy(self) -> CatalogPartition:
        """The same; it does not change."""
        return self

    def get_description(self) -> str | None:
        """None, as in Flink."""
        return None

    def get_detailed_description(self) -> str | None:
        """None, as in Flink."""
        return None

    def get_comment(self) -> str:
        """The comment; empty if there is none."""
        return self.comment or ""


class FunctionLanguage(Enum):
    """The languages of Flink's functions. Firesteel runs those in Python."""

    JAVA = "JAVA"
    SCALA = "SCALA"
    PYTHON = "PYTHON"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class CatalogFunction:
    """A function by the name of its class or callable."""

    class_name: str
    language: FunctionLanguage = FunctionLanguage.PYTHON
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """A function of a language."""
        return CatalogFunction(class_name, FunctionLanguage(function_language.upper()))

    def get_class_name(self) -> str:
        """The name of its class, or ``module.callable``."""
        return self.class_name

    def copy(self) -> CatalogFunction:
        """The same; it does not change."""
        return self

    def get_description(self) -> str | None:
        """What it is."""
        return "This is a user-defined function"

    def get_detailed_description(self) -> str | None:
        """What it is."""
        return "This is a user-defined function"

    def get_function_language(self) -> FunctionLanguage:
        """The language."""
        return self.language

    def get_options(self) -> dict[str, str]:
        """The options of its WITH clause."""
        return dict(self.options)


@dataclass(frozen=True)
class CatalogModel:
    """A model that ``ML_PREDICT`` calls."""

    input_schema: Schema
    output_schema: Schema
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @staticmethod
    def create_model(
        input_schema: Schema,
        output_schema: Schema,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogModel:
        """A model with the columns it takes and those it returns."""
        return CatalogModel(input_schema, output_schema, _options(options), comment)

    def copy(self) -> CatalogModel:
        """The same; it does not change."""
        return self

    def get_comment(self) -> str:
        """The comment; empty if there is none."""
        return self.comment or ""

    def get_options(self) -> dict[str, str]:
        """The options of its WITH clause."""
        return dict(self.options)
