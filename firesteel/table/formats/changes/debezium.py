"""The format ``debezium-json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.config.option import ConfigOptions
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import FactoryContext
from firesteel.table.connector.format import FormatFactory
from firesteel.table.connector.options import option_of
from firesteel.table.formats.changes.codec import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Change,
    ChangeDecodingFormat,
    ChangeEncodingFormat,
)
from firesteel.table.formats.json.factory import OPTIONS, reading_of, writing_of
from firesteel.table.formats.json.values import Convert

__all__ = ["FACTORY", "DebeziumJson"]

SCHEMA_INCLUDE = ConfigOptions.key("schema-include").boolean_type().default_value(False)
_NO_BEFORE = (
    'The "before" field of {} message is null, if you are using Debezium Postgres Connector, please check the Postgres '
    "table has been set REPLICA IDENTITY to FULL level."
)


@dataclass(frozen=True)
class DebeziumJson(ChangeDecodingFormat):
    """Messages with ``before``, ``after`` and ``op``."""

    has_schema: bool = False

    def changes(self, message: Any, row: Convert) -> list[Change]:
        payload = message["payload"] if self.has_schema else message
        operation, before, after = payload["op"], payload.get("before"), payload.get("after")
        if operation in ("c", "r"):
            return [(INSERT, row(after))]
        if operation not in ("u", "d"):
            raise ValueError(f'Unknown "op" value "{operation}"')
        if before is None:
            raise ValueError(_NO_BEFORE.format("UPDATE" if operation == "u" else "DELETE"))
        if operation == "d":
            return [(DELETE, row(before))]
        return [(UPDATE_BEFORE, row(before)), (UPDATE_AFTER, row(after))]


class _Factory(FormatFactory):
    identifier = "debezium-json"
    optional_options = (*OPTIONS, SCHEMA_INCLUDE.key)

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> DebeziumJson:
        return DebeziumJson(reading_of(options), option_of(options, SCHEMA_INCLUDE))

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> ChangeEncodingFormat:
        if option_of(options, SCHEMA_INCLUDE):
            raise ValidationError("Debezium JSON serialization doesn't support 'debezium-json.schema-include' option.")
        return ChangeEncodingFormat(
            '{"before":null,"after":%s,"op":"c"}', '{"before":%s,"after":null,"op":"d"}', writing_of(options)
        )


FACTORY = _Factory()
