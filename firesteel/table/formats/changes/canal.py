"""The format ``canal-json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.config.option import ConfigOptions
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

__all__ = ["FACTORY", "CanalJson"]

DATABASE = ConfigOptions.key("database.include").string_type().no_default_value()
TABLE = ConfigOptions.key("table.include").string_type().no_default_value()


@dataclass(frozen=True)
class CanalJson(ChangeDecodingFormat):
    """Messages with lists of rows, ``data`` and ``old``, and a ``type``."""

    database: str | None = None
    """A regular expression for the databases that are read."""
    table: str | None = None

    def changes(self, message: Any, row: Convert) -> list[Change]:
        for pattern, name in ((self.database, "database"), (self.table, "table")):
            if pattern is not None and not re.fullmatch(pattern, message[name]):
                return []
        kind, rows = message["type"], message.get("data")
        if kind == "INSERT":
            return [(INSERT, row(one)) for one in rows]
        if kind == "DELETE":
            return [(DELETE, row(one)) for one in rows]
        if kind == "CREATE":
            return []  # no change of a row
        if kind != "UPDATE":
            raise ValueError(f'Unknown "type" value "{kind}"')
        found = []
        for old, one in zip(message["old"], rows, strict=True):
            # of the row before there are the fields that have changed
            found += [(UPDATE_BEFORE, row({**one, **old})), (UPDATE_AFTER, row(one))]
        return found


class _Factory(FormatFactory):
    identifier = "canal-json"
    optional_options = (*OPTIONS, DATABASE.key, TABLE.key)

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> CanalJson:
        return CanalJson(reading_of(options), option_of(options, DATABASE), option_of(options, TABLE))

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> ChangeEncodingFormat:
        return ChangeEncodingFormat(
            '{"data":[%s],"type":"INSERT"}', '{"data":[%s],"type":"DELETE"}', writing_of(options)
        )


FACTORY = _Factory()
