"""Iceberg's catalogs, by the options of its connector for Flink."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.lakes.errors import LakeTableNotFoundError, nearest, require_library

__all__ = ["CATALOG_TYPES", "catalog_properties", "load_catalog", "load_table"]

CATALOG_TYPES = ("rest", "sql", "hive", "glue", "dynamodb", "bigquery", "in-memory")
_IMPLEMENTATIONS = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog": "dynamodb",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
}
_JDBC = "jdbc:"


def catalog_properties(options: Mapping[str, str]) -> dict[str, str]:
    """The properties of pyiceberg's catalog for options of SQL.

    ``catalog-type`` is one of pyiceberg's, or ``jdbc``, which is its ``sql``. Instead, ``catalog-impl`` names a class
    of Iceberg's. Options that begin with ``catalog.``, and ``uri`` and ``warehouse``, are those of the catalog.

    >>> catalog_properties({"catalog-type": "jdbc", "uri": "jdbc:sqlite:/tmp/a.db", "warehouse": "/tmp/w"})
    {'type': 'sql', 'uri': 'sqlite:////tmp/a.db', 'warehouse': '/tmp/w'}
    """
    kind = options.get("catalog-type")
    implementation = options.get("catalog-impl")
    if kind is None and implementation is not None:
        kind = _IMPLEMENTATIONS.get(implementation)
        if kind is None:
            known = ", ".join(_IMPLEMENTATIONS)
            raise InvalidProgramError(f"'catalog-impl' = '{implementation}' is not known.", hint=f"Known: {known}.")
    kind = {"jdbc": "sql"}.get(kind or "rest", kind or "rest")
    if kind == "hadoop":
        raise InvalidProgramError(
            "'catalog-type' = 'hadoop' is not supported: pyiceberg has no such catalog.",
            hint=f"Use one of {', '.join(CATALOG_TYPES)}.",
        )
    if kind not in CATALOG_TYPES:
        raise InvalidProgramError(
            f"'catalog-type' = '{kind}' is not known.",
            hint=nearest(kind, CATALOG_TYPES) or f"Known: {', '.join(CATALOG_TYPES)}.",
        )
    found = {"type": kind}
    for key, value in options.items():
        if key in ("uri", "warehouse"):
            found[key] = value
        elif key.startswith("catalog.") and key != "catalog.":
            found[key.removeprefix("catalog.")] = value
        elif key.startswith(("s3.", "gcs.", "adls.", "io.", "rest.", "header.", "oauth2-", "hdfs.")) or key in (
            "token",
            "credential",
            "scope",
            "py-io-impl",
            "clients",
        ):
            found["py-io-impl" if key == "io.impl" else key] = value
    if kind == "sql" and found.get("uri", "").startswith(_JDBC):
        found["uri"] = _from_jdbc(found["uri"].removeprefix(_JDBC))
    return found


def _from_jdbc(url: str) -> str:
    scheme, _, rest = url.partition(":")
    return f"{scheme}:///{rest}" if scheme == "sqlite" and not rest.startswith("//") else url


def load_catalog(name: str, properties: Mapping[str, str]) -> Any:
    """A catalog of pyiceberg."""
    catalogs = require_library("pyiceberg.catalog", "iceberg", "Iceberg")
    try:
        return catalogs.load_catalog(name, **properties)
    except ImportError as error:
        raise InvalidProgramError(
            f"The catalog '{name}' of type '{properties.get('type')}' needs a library that is not installed: {error}.",
            hint=f"pip install 'pyiceberg[{properties.get('type')}]'.",
        ) from error


def load_table(catalog: Any, name: str, identifier: tuple[str, ...]) -> Any:
    """A table of a catalog; the error has the name that is most like it."""
    errors = require_library("pyiceberg.exceptions", "iceberg", "Iceberg")
    try:
        return catalog.load_table(identifier)
    except (errors.NoSuchTableError, errors.NoSuchNamespaceError) as error:
        hint = None
        with suppress(Exception):
            namespace = identifier[:-1]
            databases = [".".join(one) for one in catalog.list_namespaces()]
            if ".".join(namespace) not in databases:
                hint = nearest(".".join(namespace), databases) or f"Its databases: {', '.join(databases) or 'none'}."
            else:
                tables = [one[-1] for one in catalog.list_tables(namespace)]
                hint = nearest(identifier[-1], tables) or f"The tables of its database: {', '.join(tables) or 'none'}."
        raise LakeTableNotFoundError(
            f"The Iceberg catalog '{name}' has no table '{'.'.join(identifier)}'.", hint=hint
        ) from error
