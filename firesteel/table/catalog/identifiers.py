"""Names of objects in catalogs."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.names import quoted

__all__ = ["ObjectIdentifier", "ObjectPath"]


@dataclass(frozen=True, order=True)
class ObjectPath:
    """A database and the name of a table, view, function or model in it."""

    database_name: str
    object_name: str

    def __post_init__(self) -> None:
        for what, name in (("databaseName", self.database_name), ("objectName", self.object_name)):
            if not name or not name.strip():
                raise ValueError(f"{what} cannot be null or empty")

    def get_database_name(self) -> str:
        """The database."""
        return self.database_name

    def get_object_name(self) -> str:
        """The name within the database."""
        return self.object_name

    def get_full_name(self) -> str:
        """Both, with a dot between them."""
        return f"{self.database_name}.{self.object_name}"

    def compare_to(self, other: ObjectPath) -> int:
        """Negative, zero or positive as in Java."""
        return (self > other) - (self < other)

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """The path that ``database.object`` names."""
        parts = full_name.split(".")
        if len(parts) != 2:
            raise ValueError(f"Cannot get split '{full_name}' to get databaseName and objectName")
        return ObjectPath(*parts)

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True, order=True)
class ObjectIdentifier:
    """A catalog, a database, and the name of an object in it."""

    catalog_name: str
    database_name: str
    object_name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """The identifier of these three names."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """The catalog."""
        return self.catalog_name

    def get_database_name(self) -> str:
        """The database."""
        return self.database_name

    def get_object_name(self) -> str:
        """The name within the database."""
        return self.object_name

    def to_object_path(self) -> ObjectPath:
        """The path within the catalog."""
        return ObjectPath(self.database_name, self.object_name)

    def to_list(self) -> list[str]:
        """The three names."""
        return [self.catalog_name, self.database_name, self.object_name]

    def as_serializable_string(self) -> str:
        """The names as SQL has them, each in backticks."""
        return ".".join(map(quoted, self.to_list()))

    def as_summary_string(self) -> str:
        """The names with dots between them."""
        return ".".join(self.to_list())

    def __str__(self) -> str:
        return self.as_serializable_string()
