"""The format ``json`` and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firesteel.config.option import ConfigOptions
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import FactoryContext
from firesteel.table.connector.format import Decoder, DecodingFormat, Encoder, EncodingFormat, FormatFactory
from firesteel.table.connector.options import option_of
from firesteel.table.formats.json.decoder import JsonDecoder
from firesteel.table.formats.json.encoder import JsonEncoder, JsonWriting
from firesteel.table.formats.json.values import JsonReading
from firesteel.table.formats.texts import TextFormats
from firesteel.types.logical import RowType

__all__ = ["FACTORY", "JsonDecodingFormat", "JsonEncodingFormat", "reading_of", "writing_of"]

_key = ConfigOptions.key
FAIL_ON_MISSING = _key("fail-on-missing-field").boolean_type().default_value(False)
IGNORE_ERRORS = _key("ignore-parse-errors").boolean_type().default_value(False)
TIMESTAMPS = _key("timestamp-format.standard").string_type().default_value("SQL")
NULL_KEYS = _key("map-null-key.mode").string_type().default_value("FAIL")
NULL_KEY_LITERAL = _key("map-null-key.literal").string_type().default_value("null")
PLAIN_DECIMALS = _key("encode.decimal-as-plain-number").boolean_type().default_value(False)
IGNORE_NULLS = _key("encode.ignore-null-fields").boolean_type().default_value(False)
_NULL_KEYS = ("LITERAL", "FAIL", "DROP")
"""Keys of maps in columns are never null, so that there is nothing to do in either mode."""
JSON_PARSER = _key("decode.json-parser.enabled").boolean_type().default_value(True)


@dataclass(frozen=True)
class JsonDecodingFormat(DecodingFormat):
    """Objects with the columns as fields."""

    texts: TextFormats
    ignores_errors: bool
    fails_on_missing: bool

    @property
    def line_delimited(self) -> bool:
        return True

    @property
    def reading(self) -> JsonReading:
        """The options of the reader."""
        return JsonReading(self.texts, ignores_errors=self.ignores_errors, fails_on_missing=self.fails_on_missing)

    def create_decoder(self, row_type: RowType) -> Decoder:
        return JsonDecoder(row_type, self.reading)


@dataclass(frozen=True)
class JsonEncodingFormat(EncodingFormat):
    """Objects with the columns as fields."""

    writing: JsonWriting

    def create_encoder(self, row_type: RowType) -> Encoder:
        return JsonEncoder(row_type, self.writing)


def texts_of(options: Mapping[str, str]) -> TextFormats:
    """The standard of timestamps."""
    standard = option_of(options, TIMESTAMPS)
    if standard not in ("SQL", "ISO-8601"):
        raise ValidationError(
            f"Unsupported value '{standard}' for timestamp-format.standard. Supported values are [SQL, ISO-8601]."
        )
    return TextFormats(standard == "ISO-8601")


def reading_of(options: Mapping[str, str]) -> JsonDecodingFormat:
    """The reading half of the options."""
    fails, ignores = option_of(options, FAIL_ON_MISSING), option_of(options, IGNORE_ERRORS)
    if fails and ignores:
        raise ValidationError("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")
    return JsonDecodingFormat(texts_of(options), ignores, fails)


def writing_of(options: Mapping[str, str]) -> JsonWriting:
    """The writing half of the options."""
    mode = option_of(options, NULL_KEYS)
    if mode not in _NULL_KEYS:
        raise ValidationError(
            f"Unsupported value '{mode}' for option map-null-key.mode. Supported values are [LITERAL, FAIL, DROP]."
        )
    return JsonWriting(
        texts_of(options).is_iso,
        option_of(options, PLAIN_DECIMALS),
        option_of(options, IGNORE_NULLS),
    )


OPTIONS = (
    FAIL_ON_MISSING.key,
    IGNORE_ERRORS.key,
    TIMESTAMPS.key,
    NULL_KEYS.key,
    NULL_KEY_LITERAL.key,
    PLAIN_DECIMALS.key,
    IGNORE_NULLS.key,
    JSON_PARSER.key,
)


class _Factory(FormatFactory):
    identifier = "json"
    optional_options = OPTIONS

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> JsonDecodingFormat:
        return reading_of(options)

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> JsonEncodingFormat:
        return JsonEncodingFormat(writing_of(options))


FACTORY = _Factory()
