"""What the formats of changes share: messages with rows before and after a change."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firesteel.formats.json.library import JsonCodec
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.format import Decoded, Decoder, DecodingFormat, Encoder, EncodingFormat
from firesteel.table.formats.json.decoder import JsonDecodeError
from firesteel.table.formats.json.encoder import JsonEncoder, JsonWriting
from firesteel.table.formats.json.factory import JsonDecodingFormat
from firesteel.table.formats.json.values import Convert, row_converter
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema, to_column
from firesteel.types.logical import RowType

__all__ = [
    "DELETE",
    "INSERT",
    "UPDATE_AFTER",
    "UPDATE_BEFORE",
    "Change",
    "ChangeDecodingFormat",
    "ChangeEncodingFormat",
]

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
Change = tuple[int, tuple[Any, ...]]
"""A row kind and a row."""


@dataclass(frozen=True)
class ChangeDecodingFormat(DecodingFormat):
    """Messages of which each makes rows of any kinds."""

    values: JsonDecodingFormat
    """How rows within messages are read."""

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.all()

    @property
    def line_delimited(self) -> bool:
        return True

    @abstractmethod
    def changes(self, message: Any, row: Convert) -> list[Change]:
        """The rows of a parsed message. Raises ValueError if it has none."""

    def create_decoder(self, row_type: RowType) -> Decoder:
        return _ChangeDecoder(self, row_type)


class _ChangeDecoder(Decoder):
    def __init__(self, changes: ChangeDecodingFormat, row_type: RowType) -> None:
        self._format = changes
        self._row_type = row_type
        self._row = row_converter(row_type, changes.values.reading)
        self._parse = JsonCodec(verbatim=True).load

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        rows: list[tuple[Any, ...]] = []
        kinds: list[int] = []
        places: list[int] = []
        for place, message in enumerate(messages):
            if not message:
                continue  # a tombstone
            for kind, row in self._changes(message):
                kinds.append(kind)
                rows.append(row)
                places.append(place)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self._row_type.fields)
        arrays = [to_column(column, part.type) for column, part in zip(columns, self._row_type.fields, strict=True)]
        data = require_pyarrow("SQL").RecordBatch.from_arrays(arrays, schema=columns_schema(self._row_type))
        return Decoded(data, np.array(kinds, np.int8), np.array(places, np.int64))

    def _changes(self, message: bytes) -> list[Change]:
        try:
            return self._format.changes(self._parse(message), self._row)
        except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
            if self._format.values.ignores_errors:
                return []
            shown = message[:200].decode("utf-8", "replace")
            raise JsonDecodeError(f"Corrupt {type(self._format).__name__} message '{shown}': {error}.") from None


@dataclass(frozen=True)
class ChangeEncodingFormat(EncodingFormat):
    """Messages for rows of all kinds; an update is written as a deletion and an insertion, as Flink does."""

    inserted: str
    """The text of a message, with ``%s`` for the row."""
    deleted: str
    writing: JsonWriting

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.all()

    def create_encoder(self, row_type: RowType) -> Encoder:
        return _ChangeEncoder(self, row_type)


class _ChangeEncoder(Encoder):
    def __init__(self, changes: ChangeEncodingFormat, row_type: RowType) -> None:
        self._templates = [changes.inserted, changes.deleted, changes.inserted, changes.deleted]
        self._rows = JsonEncoder(row_type, changes.writing)

    def encode(self, batch: ColumnBatch) -> list[bytes | None]:
        texts = self._rows.texts(batch.data)
        if batch.kinds is None:
            return [(self._templates[INSERT] % text).encode("utf-8") for text in texts]
        kinds = batch.kinds.tolist()
        return [(self._templates[kind] % text).encode("utf-8") for kind, text in zip(kinds, texts, strict=True)]
