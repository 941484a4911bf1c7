"""Catalog stores: the options of catalogs, of which they are opened when they are first used."""

from __future__ import annotations

from abc import ABC, abstractmethod

from firesteel.table.catalog.objects import CatalogDescriptor

__all__ = ["CatalogStore", "GenericInMemoryCatalogStore"]


class CatalogStore(ABC):
    """Keeps the descriptors of catalogs by name."""

    @abstractmethod
    def store_catalog(self, descriptor: CatalogDescriptor) -> None:
        """Adds a descriptor, or replaces the one of its name."""

    @abstractmethod
    def remove_catalog(self, catalog_name: str) -> None:
        """Removes a descriptor, if there is one of this name."""

    @abstractmethod
    def get_catalog(self, catalog_name: str) -> CatalogDescriptor | None:
        """A descriptor; None if there is none of this name."""

    @abstractmethod
    def list_catalogs(self) -> list[str]:
        """The names of all catalogs."""

    def contains(self, catalog_name: str) -> bool:
        """Whether there is a descriptor of this name."""
        return catalog_name in self.list_catalogs()


class GenericInMemoryCatalogStore(CatalogStore):
    """Keeps descriptors for the time of the session."""

    def __init__(self) -> None:
        self._descriptors: dict[str, CatalogDescriptor] = {}

    def store_catalog(self, descriptor: CatalogDescriptor) -> None:
        self._descriptors[descriptor.catalog_name] = descriptor

    def remove_catalog(self, catalog_name: str) -> None:
        self._descriptors.pop(catalog_name, None)

    def get_catalog(self, catalog_name: str) -> CatalogDescriptor | None:
        return self._descriptors.get(catalog_name)

    def list_catalogs(self) -> list[str]:
        return list(self._descriptors)
