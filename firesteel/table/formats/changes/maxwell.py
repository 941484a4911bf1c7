"""The format ``maxwell-json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.table.connector.factory import FactoryContext
from firesteel.table.connector.format import FormatFactory
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

__all__ = ["FACTORY", "MaxwellJson"]


@dataclass(frozen=True)
class MaxwellJson(ChangeDecodingFormat):
    """Messages with a row, ``data``, what changed of it, ``old``, and a ``type``."""

    def changes(self, message: Any, row: Convert) -> list[Change]:
        kind, data = message["type"], message["data"]
        if kind == "insert":
            return [(INSERT, row(data))]
        if kind == "delete":
            return [(DELETE, row(data))]
        if kind != "update":
            raise ValueError(f'Unknown "type" value "{kind}"')
        return [(UPDATE_BEFORE, row({**data, **message["old"]})), (UPDATE_AFTER, row(data))]


class _Factory(FormatFactory):
    identifier = "maxwell-json"
    optional_options = OPTIONS

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> MaxwellJson:
        return MaxwellJson(reading_of(options))

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> ChangeEncodingFormat:
        return ChangeEncodingFormat('{"data":%s,"type":"insert"}', '{"data":%s,"type":"delete"}', writing_of(options))


FACTORY = _Factory()
