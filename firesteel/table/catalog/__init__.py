"""Catalogs: where tables, views, functions and models are found. The names are those of PyFlink's module."""

from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.columns import Column, ComputedColumn, MetadataColumn, PhysicalColumn
from firesteel.table.catalog.identifiers import ObjectIdentifier, ObjectPath
from firesteel.table.catalog.in_memory import GenericInMemoryCatalog
from firesteel.table.catalog.objects import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    CatalogModel,
    CatalogPartition,
    CatalogPartitionSpec,
)
from firesteel.table.catalog.resolved_schema import Constraint, ResolvedSchema, UniqueConstraint, WatermarkSpec
from firesteel.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogColumnStatistics",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogModel",
    "CatalogPartition",
    "CatalogPartitionSpec",
    "CatalogTableStatistics",
    "Column",
    "ComputedColumn",
    "Constraint",
    "GenericInMemoryCatalog",
    "MetadataColumn",
    "ObjectIdentifier",
    "ObjectPath",
    "PhysicalColumn",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
]
