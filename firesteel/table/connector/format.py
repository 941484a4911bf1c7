"""Formats: how the bytes of messages become columns, and columns become messages."""

from __future__ import annotations

import difflib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import FactoryContext, check_options
from firesteel.types.logical import RowType

__all__ = [
    "BUILT_IN_FORMATS",
    "Decoded",
    "Decoder",
    "DecodingFormat",
    "Encoder",
    "EncodingFormat",
    "FormatFactory",
    "find_format",
]

BUILT_IN_FORMATS: dict[str, str] = {
    "avro": "firesteel.table.formats.avro",
    "canal-json": "firesteel.table.formats.changes.canal",
    "csv": "firesteel.table.formats.csv",
    "debezium-json": "firesteel.table.formats.changes.debezium",
    "json": "firesteel.table.formats.json",
    "maxwell-json": "firesteel.table.formats.changes.maxwell",
    "raw": "firesteel.table.formats.raw",
}
"""The module of each format; its ``FACTORY`` is the factory."""


@dataclass
class Decoded:
    """The rows of messages."""

    data: Any
    """A RecordBatch."""
    kinds: Any = None
    """The row kinds as a numpy array of int8; None if all rows are insertions."""
    messages: Any = None
    """The index of the message of each row as a numpy array; None if each message has one row."""


class Decoder(ABC):
    """Decodes messages in one subtask."""

    @abstractmethod
    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        """The rows of messages, in their order."""


class Encoder(ABC):
    """Encodes rows in one subtask."""

    @abstractmethod
    def encode(self, batch: ColumnBatch) -> list[bytes | None]:
        """The message of each row; None for a deletion that has none."""


class DecodingFormat(ABC):
    """Creates decoders. Formats are immutable, hashable and picklable."""

    @property
    def changelog_mode(self) -> ChangelogMode:
        """The kinds of rows that messages have."""
        return ChangelogMode.insert_only()

    @abstractmethod
    def create_decoder(self, row_type: RowType) -> Decoder:
        """A decoder of these columns, which are some of those of the messages."""

    @property
    def line_delimited(self) -> bool:
        """Whether files have one message a line."""
        return False


class EncodingFormat(ABC):
    """Creates encoders. Formats are immutable, hashable and picklable."""

    @property
    def changelog_mode(self) -> ChangelogMode:
        """The kinds of rows that can be encoded."""
        return ChangelogMode.insert_only()

    @abstractmethod
    def create_encoder(self, row_type: RowType) -> Encoder:
        """An encoder of rows of these columns."""


class FormatFactory:
    """Creates the formats of a name. What it cannot create raises ValidationError."""

    identifier: str
    required_options: Iterable[str] = ()
    optional_options: Iterable[str] = ()

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> DecodingFormat:
        """The format that reads; options are without the name of the format."""
        raise ValidationError(f"The format '{self.identifier}' cannot be read from this connector.")

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> EncodingFormat:
        """The format that writes."""
        raise ValidationError(f"The format '{self.identifier}' cannot be written to this connector.")


def find_format(
    context: FactoryContext, key: str = "format", default: str | None = None
) -> tuple[FormatFactory, dict[str, str], set[str]] | None:
    """The factory that an option names, its options, and all keys that belong to it; None without the option.

    Options of ``format`` begin with the name of the format, those of ``value.format`` with ``value.`` before it.
    """
    name = context.options.get(key, default)
    if name is None:
        return None
    if name not in BUILT_IN_FORMATS:
        near = difflib.get_close_matches(name, BUILT_IN_FORMATS, 1)
        raise ValidationError(
            f"Could not find any format factory for identifier '{name}' in the classpath.",
            hint=f"Did you mean '{near[0]}'?" if near else f"Known formats: {', '.join(sorted(BUILT_IN_FORMATS))}.",
        )
    factory: FormatFactory = importlib.import_module(BUILT_IN_FORMATS[name]).FACTORY
    prefix = f"{key.removesuffix('format')}{name}."
    own = {option: value for option, value in context.options.items() if option.startswith(prefix)}
    options = {option.removeprefix(prefix): value for option, value in own.items()}
    check_options(name, options, factory.required_options, factory.optional_options)
    return factory, options, {key, *own}
