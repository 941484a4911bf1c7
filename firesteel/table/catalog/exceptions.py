"""Errors of catalogs, with Flink's names and messages."""

from __future__ import annotations

from firesteel.common.errors import FiresteelError
from firesteel.table.catalog.identifiers import ObjectIdentifier, ObjectPath

__all__ = [
    "CatalogException",
    "DatabaseAlreadyExistException",
    "DatabaseNotEmptyException",
    "DatabaseNotExistException",
    "FunctionAlreadyExistException",
    "FunctionNotExistException",
    "ModelAlreadyExistException",
    "ModelNotExistException",
    "PartitionAlreadyExistsException",
    "PartitionNotExistException",
    "PartitionSpecInvalidException",
    "TableAlreadyExistException",
    "TableNotExistException",
    "TableNotPartitionedException",
]


class CatalogException(FiresteelError):
    """A catalog cannot do what it is asked for."""


class _MissingOrPresent(CatalogException):
    """An object of a catalog that is missing, or that exists already."""

    kind: str
    state: str

    def __init__(self, catalog: str, name: ObjectPath | str, *, hint: str | None = None) -> None:
        super().__init__(f"{self.kind} {name} {self.state} in Catalog {catalog}.", hint=hint)


class DatabaseNotExistException(_MissingOrPresent):
    """There is no such database."""

    kind, state = "Database", "does not exist"


class DatabaseAlreadyExistException(_MissingOrPresent):
    """There is such a database."""

    kind, state = "Database", "already exists"


class TableNotExistException(_MissingOrPresent):
    """There is no such table."""

    kind, state = "Table (or view)", "does not exist"


class TableAlreadyExistException(_MissingOrPresent):
    """There is such a table."""

    kind, state = "Table (or view)", "already exists"


class FunctionNotExistException(_MissingOrPresent):
    """There is no such function."""

    kind, state = "Function", "does not exist"


class FunctionAlreadyExistException(_MissingOrPresent):
    """There is such a function."""

    kind, state = "Function", "already exists"


class ModelAlreadyExistException(_MissingOrPresent):
    """There is such a model."""

    kind, state = "Model", "already exists"


class ModelNotExistException(CatalogException):
    """There is no such model."""

    def __init__(self, catalog: str, path: ObjectPath) -> None:
        identifier = ObjectIdentifier(catalog, path.database_name, path.object_name)
        super().__init__(f"Model '{identifier}' does not exist.")


class DatabaseNotEmptyException(CatalogException):
    """The database has tables."""

    def __init__(self, catalog: str, name: str) -> None:
        super().__init__(
            f"Database {name} in catalog {catalog} is not empty.",
            hint="DROP DATABASE … CASCADE drops what is in it, too.",
        )


class TableNotPartitionedException(CatalogException):
    """The table has no partitions."""

    def __init__(self, catalog: str, path: ObjectPath) -> None:
        super().__init__(f"Table {path} in catalog {catalog} is not partitioned.")


class PartitionSpecInvalidException(CatalogException):
    """The partition does not have the columns by which the table is partitioned."""

    def __init__(self, catalog: str, keys: list[str], path: ObjectPath, spec: object) -> None:
        names = ", ".join(keys)
        super().__init__(
            f"PartitionSpec {spec} does not match partition keys [{names}] of table {path} in catalog {catalog}."
        )


class _PartitionException(CatalogException):
    state: str

    def __init__(self, catalog: str, path: ObjectPath, spec: object) -> None:
        super().__init__(f"Partition {spec} of table {path} in catalog {catalog} {self.state}.")


class PartitionNotExistException(_PartitionException):
    """There is no such partition."""

    state = "does not exist"


class PartitionAlreadyExistsException(_PartitionException):
    """There is such a partition."""

    state = "already exists"
