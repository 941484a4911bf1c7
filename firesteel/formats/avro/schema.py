"""Avro schemas, and the row types that belong to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, from_logical
from firesteel.types.avro import from_avro

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo", "import_fastavro", "row_type_of"]


def import_fastavro() -> Any:
    """The module fastavro; raises an error with the package to install if it is missing."""
    try:
        import fastavro
        import fastavro.schema
    except ImportError:
        raise InvalidProgramError(
            "Avro needs the package fastavro, which is not installed.", hint="pip install 'firesteel[avro]'"
        ) from None
    return fastavro


class AvroSchema:
    """A schema of Avro; picklable.

    >>> schema = AvroSchema.parse_string('{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}')
    >>> schema.name
    'P'
    """

    def __init__(self, definition: Any):
        fastavro = import_fastavro()
        try:
            self._parsed = fastavro.parse_schema(definition)
            self._named = _named_types(self._parsed)
        except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, KeyError, TypeError) as error:
            raise InvalidProgramError(f"Not an Avro schema, {type(error).__name__}: {error}") from error
        self._definition = definition

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema that a text describes."""
        try:
            return AvroSchema(json.loads(json_schema))
        except (TypeError, ValueError) as error:
            raise InvalidProgramError(f"The Avro schema is not JSON: {error}") from error

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema that a file describes."""
        try:
            text = Path(file_path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidProgramError(f"The Avro schema '{file_path}' cannot be read: {error}") from error
        return AvroSchema.parse_string(text)

    @property
    def parsed(self) -> Any:
        """What fastavro makes of it."""
        return self._parsed

    @property
    def name(self) -> str:
        """The full name of the record, or the type if it is none."""
        resolved = self.resolve(self._parsed)
        return str(resolved["name"]) if "name" in resolved else str(resolved["type"])

    def resolve(self, node: Any) -> dict[str, Any]:
        """A type within the schema in its long form; one that is known by its name is looked up."""
        if isinstance(node, str):
            return self._named.get(node) or {"type": node}
        if isinstance(node, list):
            return {"type": "union", "types": node}
        if isinstance(node["type"], (dict, list)):
            return self.resolve(node["type"])
        found: dict[str, Any] = node
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self._definition == other._definition

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return json.dumps(self._definition)

    def __repr__(self) -> str:
        return f"AvroSchema({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (self._definition,)


class GenericRecordAvroTypeInfo(TypeInformation):
    """Records of an Avro schema: dicts."""

    def __init__(self, schema: AvroSchema):
        self._schema = schema

    def get_schema(self) -> AvroSchema:
        """The schema of the records."""
        return self._schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GenericRecordAvroTypeInfo) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(self._schema)

    def __repr__(self) -> str:
        return f"GenericRecord<{self._schema.name}>"


def row_type_of(schema: AvroSchema) -> RowTypeInfo:
    """The type of rows with the fields of an Avro record, as Flink's AvroSchemaConverter maps them."""
    type_info = from_logical(from_avro(schema, schema.parsed, legacy=True))
    if not isinstance(type_info, RowTypeInfo):
        raise InvalidProgramError(
            f"The Avro schema describes {schema.name}, not a record.", hint='Its root needs "type": "record".'
        )
    return type_info


def _named_types(node: Any) -> dict[str, dict[str, Any]]:
    """All records, enums and fixed types of a parsed schema, by full name."""
    named: dict[str, dict[str, Any]] = {}
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending += part
        elif isinstance(part, dict):
            if "name" in part and part.get("type") in ("record", "error", "enum", "fixed"):
                named[part["name"]] = part
            pending += [field["type"] for field in part.get("fields", ())]
            pending += [part[key] for key in ("type", "items", "values") if isinstance(part.get(key), (dict, list))]
    return named
