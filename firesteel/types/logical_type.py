"""The roots of logical types, and the base class of all logical types."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any, ClassVar

__all__ = ["LogicalType", "LogicalTypeRoot"]


class LogicalTypeRoot(Enum):
    """The kind of a type, without its parameters."""

    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME_WITHOUT_TIME_ZONE = "TIME_WITHOUT_TIME_ZONE"
    TIMESTAMP_WITHOUT_TIME_ZONE = "TIMESTAMP_WITHOUT_TIME_ZONE"
    TIMESTAMP_WITH_LOCAL_TIME_ZONE = "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
    INTERVAL_YEAR_MONTH = "INTERVAL_YEAR_MONTH"
    INTERVAL_DAY_TIME = "INTERVAL_DAY_TIME"
    ARRAY = "ARRAY"
    MULTISET = "MULTISET"
    MAP = "MAP"
    ROW = "ROW"
    STRUCTURED_TYPE = "STRUCTURED_TYPE"
    NULL = "NULL"
    RAW = "RAW"
    VARIANT = "VARIANT"
    BITMAP = "BITMAP"


class LogicalType:
    """A type; immutable, hashable and picklable. Types are equal if root, parameters and nullability are.

    No dataclass: making one for each type would be a twentieth of the time that ``import firesteel.datastream`` takes.
    """

    root: ClassVar[LogicalTypeRoot]
    parameters: ClassVar[tuple[str, ...]] = ()
    """The names of the attributes that types of this root differ in."""

    nullable: bool
    declared_as: str | None
    """The type in the words of the API in which a program declared it, for error messages."""

    def __init__(self, *, nullable: bool = True, declared_as: str | None = None) -> None:
        self._set(nullable=nullable, declared_as=declared_as)

    def _set(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def _with(self, **attributes: Any) -> LogicalType:
        changed = copy.copy(self)
        changed._set(**attributes)
        return changed

    def copy(self, nullable: bool = True) -> LogicalType:
        """The same type with another nullability."""
        return self._with(nullable=nullable)

    def not_null(self) -> LogicalType:
        """The same type without null."""
        return self.copy(nullable=False)

    def named(self, declared_as: str) -> LogicalType:
        """The same type in the words of an API."""
        return self._with(declared_as=declared_as)

    def children(self) -> tuple[LogicalType, ...]:
        """The types of which this type is made."""
        return ()

    def as_summary_string(self) -> str:
        """The type as Flink prints it: ``ROW<`name` STRING, `age` INT NOT NULL>``."""
        return self._with_nullability(self._summary())

    def _summary(self) -> str:
        return self.root.value

    def _with_nullability(self, text: str) -> str:
        return text if self.nullable else f"{text} NOT NULL"

    def _identity(self) -> tuple[Any, ...]:
        return (type(self), self.nullable, *(getattr(self, name) for name in self.parameters))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogicalType) and self._identity() == other._identity()

    def __hash__(self) -> int:
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = hash(self._identity())
            self._set(_hash=known)
        return known

    def __getstate__(self) -> dict[str, Any]:
        # another process has other hashes of strings, and a changed copy has another one
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"The {name} of the type {self} cannot be set: types do not change.")

    def __str__(self) -> str:
        return self.declared_as or self.as_summary_string()

    def __repr__(self) -> str:
        return f"<{self.as_summary_string()}>"
