"""The catalog store of a session: in memory, or a directory with a YAML file for each catalog, as in Flink."""

from __future__ import annotations

import difflib
import re

import yaml

from firesteel.common.errors import FiresteelError
from firesteel.config.configuration import Configuration
from firesteel.config.table_options import CATALOG_STORE_FILE_PATH, CATALOG_STORE_KIND
from firesteel.filesystem.filesystem import join
from firesteel.filesystem.stores import Stores
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.objects import CatalogDescriptor
from firesteel.table.catalog.store import CatalogStore, GenericInMemoryCatalogStore

__all__ = ["FileCatalogStore", "catalog_store"]

_SUFFIX = ".yaml"
_PLAIN = re.compile(r"[A-Za-z][\w.-]*")
_KINDS = ("file", "generic_in_memory")


def catalog_store(configuration: Configuration) -> CatalogStore:
    """The store that the options ``table.catalog-store.*`` describe."""
    kind = configuration.get(CATALOG_STORE_KIND)
    if kind == "generic_in_memory":
        return GenericInMemoryCatalogStore()
    if kind != "file":
        near = difflib.get_close_matches(kind, _KINDS, 1)
        raise ValidationError(
            f"Could not find any factory for identifier '{kind}' of a catalog store. Available factory identifiers are:"
            f" {', '.join(_KINDS)}.",
            hint=f"Did you mean '{near[0]}'?" if near else None,
        )
    path = configuration.get(CATALOG_STORE_FILE_PATH)
    if not path:
        raise ValidationError(
            "One or more required options are missing.\n\nMissing required options are:\n\n"
            f"{CATALOG_STORE_FILE_PATH.key}"
        )
    return FileCatalogStore(path, configuration)


class FileCatalogStore(CatalogStore):
    """A directory with the options of each catalog in ``<name>.yaml``. Comments are not kept, as in Flink."""

    def __init__(self, path: str, configuration: Configuration) -> None:
        self._path = path.removeprefix("file://")
        self._files = Stores.of(configuration).get(self._path)
        try:
            self._files.makedirs(self._path)
        except (OSError, FiresteelError) as error:
            raise CatalogException(f"Failed to open file catalog store directory {path}: {error}") from error

    def store_catalog(self, descriptor: CatalogDescriptor) -> None:
        name = descriptor.catalog_name
        if "/" in name or name.startswith("."):
            raise CatalogException(f"A catalog of the catalog store {self._path} cannot have the name '{name}'.")
        # values are in quotes, as Flink writes them
        text = "".join(f"{_key(key)}: {_quoted(value)}\n" for key, value in sorted(descriptor.options.items()))
        self._files.write(self._file(name), [text.encode()])

    def remove_catalog(self, catalog_name: str) -> None:
        if self.contains(catalog_name):
            self._files.delete(self._file(catalog_name))

    def get_catalog(self, catalog_name: str) -> CatalogDescriptor | None:
        if not self.contains(catalog_name):
            return None
        path = self._file(catalog_name)
        try:
            found = yaml.safe_load(self._files.read(path))
        except yaml.YAMLError as error:
            raise CatalogException(f"The file {path} of the catalog store is not YAML: {error}") from error
        if not isinstance(found, dict) or any(isinstance(value, (dict, list)) for value in found.values()):
            raise CatalogException(f"The file {path} of the catalog store has to have one option in each line.")
        options = {
            str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in found.items()
        }
        return CatalogDescriptor(catalog_name, Configuration.from_dict(options))

    def list_catalogs(self) -> list[str]:
        return sorted(name.removesuffix(_SUFFIX) for name in self._files.list(self._path) if name.endswith(_SUFFIX))

    def _file(self, name: str) -> str:
        return join(self._path, f"{name}{_SUFFIX}")


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    return str(yaml.safe_dump(text, default_style='"', width=1 << 30)).strip()
