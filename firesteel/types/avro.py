"""The logical types of Avro schemas.

Not one to one: enums become strings, fixed bytes keep their size, and durations are fixed bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from firesteel.common.errors import InvalidProgramError
from firesteel.types import logical as t
from firesteel.types.codec import join_path
from firesteel.types.logical import LogicalType

__all__ = ["ResolvedSchema", "actual_type", "from_avro"]

_PRIMITIVE: dict[str, LogicalType] = {
    "string": t.VarCharType(),
    "enum": t.VarCharType(),
    "int": t.IntType(),
    "long": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "boolean": t.BooleanType(),
    "bytes": t.VarBinaryType(),
    "null": t.NullType(),
}
_LOGICAL: dict[tuple[str, str], LogicalType] = {
    ("int", "date"): t.DateType(),
    ("int", "time-millis"): t.TimeType(3),
    ("long", "time-micros"): t.TimeType(6),
    ("long", "timestamp-millis"): t.LocalZonedTimestampType(3),
    ("long", "timestamp-micros"): t.LocalZonedTimestampType(6),
    ("long", "local-timestamp-millis"): t.TimestampType(3),
    ("long", "local-timestamp-micros"): t.TimestampType(6),
}


class ResolvedSchema(Protocol):
    """A schema that gives the types within it in their long form; one that is known by its name is looked up."""

    def resolve(self, node: Any) -> dict[str, Any]:
        """The long form of a type."""


def actual_type(schema: ResolvedSchema, node: Any) -> tuple[dict[str, Any], bool] | None:
    """The type of a field and whether it may be null; None for a union of several types, which can be anything."""
    found = schema.resolve(node)
    if found["type"] != "union":
        return found, found["type"] == "null"
    others = [part for part in found["types"] if schema.resolve(part)["type"] != "null"]
    if len(others) != 1:
        return None
    return schema.resolve(others[0]), len(others) < len(found["types"])


def from_avro(
    schema: ResolvedSchema,
    node: Any,
    *,
    legacy: bool = False,
    union: Callable[[str], LogicalType] = lambda path: t.RawType(),  # noqa: ARG005 - a path is given
    path: str = "",
    within: tuple[str, ...] = (),
) -> LogicalType:
    """The logical type of a type of a schema; ``union`` gives that of a union of several types, by its path.

    With ``legacy`` it is what Flink's AvroSchemaConverter maps to type information: timestamps have no zone, and
    decimals any precision.
    """
    actual = actual_type(schema, node)
    if actual is None:
        return union(path)
    found, nullable = actual
    inner = within

    def part(part_node: Any, part_path: str) -> LogicalType:
        return from_avro(schema, part_node, legacy=legacy, union=union, path=part_path, within=inner)

    match found:
        case {"type": "record" | "error", "name": name, "fields": fields}:
            if name in within:
                raise InvalidProgramError(
                    f"The Avro record {name} holds itself, in field '{path}': a row type cannot.",
                    hint="Read it as bytes and decode it in a map function.",
                )
            inner = (*within, name)
            names = [field["name"] for field in fields]
            types = [part(field["type"], join_path(path, field["name"])) for field in fields]
            return t.RowType.of(names, types, nullable=nullable)
        case {"type": "array", "items": items}:
            return t.ArrayType(part(items, f"{path}[]"), nullable=nullable)
        case {"type": "map", "values": values}:
            return t.MapType(t.VarCharType(nullable=False), part(values, f"{path}{{}}"), nullable=nullable)
        case {"logicalType": "decimal"} if legacy:
            return t.DecimalType(None, None, nullable=nullable)
        case {"logicalType": "decimal", "precision": precision}:
            return t.DecimalType(precision, found.get("scale", 0), nullable=nullable)
        case {"type": "fixed", "size": size}:
            return t.BinaryType(size, nullable=nullable)
    kind = found["type"]
    type_ = _LOGICAL.get((kind, found.get("logicalType", ""))) or _PRIMITIVE[kind]
    if legacy and isinstance(type_, t.LocalZonedTimestampType):
        type_ = t.TimestampType(type_.precision)
    return type_.copy(nullable)
