"""Types as written in SQL, and the logical types that they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from firesteel.table.parser.errors import SqlParserException
from firesteel.types import logical
from firesteel.types.logical import LogicalType

__all__ = ["SqlField", "SqlType", "to_logical_type"]


@dataclass(frozen=True)
class SqlField:
    """A field of a row or structured type."""

    name: str
    type: SqlType
    comment: str | None = None


@dataclass(frozen=True)
class SqlType:
    """A type as written.

    ``name`` is Flink's name of the type: ``INT`` also for INTEGER, ``STRING`` also for VARCHAR(2147483647); or
    ``USER_DEFINED``, with the parts of its name in ``path``.
    """

    name: str
    parameters: tuple[int, ...] = ()
    nullable: bool = True
    elements: tuple[SqlType, ...] = ()
    fields: tuple[SqlField, ...] = ()
    strings: tuple[str, ...] = ()
    """The class of a structured type, or the class and the serializer of a raw type."""
    path: tuple[str, ...] = ()
    unit: str = ""
    """The fields of an interval: ``DAY TO SECOND``."""
    offset: int = 0

    def with_nullable(self, nullable: bool) -> SqlType:
        """The same type with another nullability."""
        return self if nullable == self.nullable else replace(self, nullable=nullable)

    def __str__(self) -> str:
        return self._text() if self.nullable else f"{self._text()} NOT NULL"

    def _text(self) -> str:
        if self.path:
            return ".".join(f"`{part}`" for part in self.path)
        if self.unit:
            return f"INTERVAL {self.unit}"
        if self.elements:
            return f"{self.name}<{', '.join(map(str, self.elements))}>"
        if self.name in ("ROW", "STRUCTURED"):
            parts = [f"'{text}'" for text in self.strings]
            parts.extend(f"`{part.name}` {part.type}" for part in self.fields)
            return f"{self.name}<{', '.join(parts)}>"
        if self.strings:
            return f"{self.name}({', '.join(repr(text) for text in self.strings)})"
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name


_ATOMS: dict[str, Callable[..., LogicalType]] = {
    "CHAR": logical.CharType,
    "VARCHAR": logical.VarCharType,
    "STRING": logical.VarCharType,
    "BOOLEAN": logical.BooleanType,
    "BINARY": logical.BinaryType,
    "VARBINARY": logical.VarBinaryType,
    "BYTES": logical.VarBinaryType,
    "DECIMAL": logical.DecimalType,
    "TINYINT": logical.TinyIntType,
    "SMALLINT": logical.SmallIntType,
    "INT": logical.IntType,
    "BIGINT": logical.BigIntType,
    "FLOAT": logical.FloatType,
    "DOUBLE": logical.DoubleType,
    "DATE": logical.DateType,
    "TIME": logical.TimeType,
    "TIMESTAMP": logical.TimestampType,
    "TIMESTAMP_LTZ": logical.LocalZonedTimestampType,
    "VARIANT": logical.VariantType,
    "BITMAP": logical.BitmapType,
}
_MAX_DECIMAL_PRECISION = 38


def to_logical_type(type_: SqlType, sql: str = "") -> LogicalType:
    """Returns the logical type of a type as written; ``sql`` is the text for errors."""
    try:
        found = _convert(type_, sql)
    except ValueError as error:
        raise SqlParserException(f"{type_} is not a type: {error}", sql, type_.offset) from error
    return found if type_.nullable else found.not_null()


def _convert(type_: SqlType, sql: str) -> LogicalType:
    name = type_.name
    if name in _ATOMS:
        # without a length VARCHAR is STRING and VARBINARY is BYTES, as in Flink
        parameters = type_.parameters
        if name == "DECIMAL" and parameters and parameters[0] > _MAX_DECIMAL_PRECISION:
            raise ValueError(f"the precision of DECIMAL is at most {_MAX_DECIMAL_PRECISION}.")
        if name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY") and parameters and parameters[0] < 1:
            raise ValueError("the length is at least 1.")
        return _ATOMS[name](*parameters)
    elements = [to_logical_type(element, sql) for element in type_.elements]
    if name == "ARRAY":
        return logical.ArrayType(*elements)
    if name == "MULTISET":
        return logical.MultisetType(*elements)
    if name == "MAP":
        return logical.MapType(*elements)
    fields = [logical.RowField(part.name, to_logical_type(part.type, sql), part.comment) for part in type_.fields]
    if name == "ROW":
        return logical.RowType(fields)
    if name == "STRUCTURED":
        return logical.StructuredType(fields, type_.strings[0])
    if name == "RAW":
        return logical.RawType(type_.strings[0])
    if name == "NULL":
        return logical.NullType()
    if type_.unit:
        return _interval(type_)
    raise SqlParserException(f"The type {type_} is not supported.", sql, type_.offset)


def _interval(type_: SqlType) -> LogicalType:
    resolution = type_.unit.replace(" ", "_")
    if resolution in logical.YearMonthResolution.__members__:
        years = type_.parameters[:1] or (2,)
        return logical.YearMonthIntervalType(logical.YearMonthResolution[resolution], *years)
    if resolution in logical.DayTimeResolution.__members__:
        days, fraction = (*type_.parameters, 2, 6)[:2] if len(type_.parameters) == 2 else (2, 6)
        return logical.DayTimeIntervalType(logical.DayTimeResolution[resolution], days, fraction)
    raise ValueError("intervals of weeks and quarters are not types.")
