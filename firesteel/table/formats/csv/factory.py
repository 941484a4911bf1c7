"""The format ``csv`` and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firesteel.config.option import ConfigOption, ConfigOptions
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import FactoryContext
from firesteel.table.connector.format import Decoder, DecodingFormat, Encoder, EncodingFormat, FormatFactory
from firesteel.table.connector.options import option_of
from firesteel.table.formats.csv.codec import CsvDecoder, CsvEncoder, CsvOptions
from firesteel.types.logical import RowType

__all__ = ["FACTORY", "CsvDecodingFormat", "CsvEncodingFormat"]

_key = ConfigOptions.key
DELIMITER = _key("field-delimiter").string_type().default_value(",")
NO_QUOTE = _key("disable-quote-character").boolean_type().default_value(False)
QUOTE = _key("quote-character").string_type().no_default_value()
COMMENTS = _key("allow-comments").boolean_type().default_value(False)
IGNORE_ERRORS = _key("ignore-parse-errors").boolean_type().default_value(False)
ARRAY_DELIMITER = _key("array-element-delimiter").string_type().default_value(";")
ESCAPE = _key("escape-character").string_type().no_default_value()
NULL_LITERAL = _key("null-literal").string_type().no_default_value()
SCIENTIFIC = _key("write-bigdecimal-in-scientific-notation").boolean_type().default_value(True)
_OPTIONS: tuple[ConfigOption[object], ...] = (  # type: ignore[assignment]
    DELIMITER,
    NO_QUOTE,
    QUOTE,
    COMMENTS,
    IGNORE_ERRORS,
    ARRAY_DELIMITER,
    ESCAPE,
    NULL_LITERAL,
    SCIENTIFIC,
)


@dataclass(frozen=True)
class CsvDecodingFormat(DecodingFormat):
    """Lines with all physical columns in order."""

    options: CsvOptions

    def create_decoder(self, row_type: RowType) -> Decoder:
        return CsvDecoder(row_type, self.options)


@dataclass(frozen=True)
class CsvEncodingFormat(EncodingFormat):
    """Lines with all columns in order."""

    options: CsvOptions

    def create_encoder(self, row_type: RowType) -> Encoder:
        return CsvEncoder(row_type, self.options)


def _character(options: Mapping[str, str], option: ConfigOption[str | None]) -> str | None:
    value = option_of(options, option)
    if value is not None:
        # a delimiter may be given as \t or as U&'\0001'
        value = value.encode().decode("unicode_escape") if value.startswith("\\") and len(value) > 1 else value
        if len(value) != 1:
            raise ValidationError(f"Option 'csv.{option.key}' must be a string with single character, but was: {value}")
    return value


class _Factory(FormatFactory):
    identifier = "csv"
    optional_options = tuple(option.key for option in _OPTIONS)

    def create_decoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> CsvDecodingFormat:
        return CsvDecodingFormat(_options(context, options))

    def create_encoding_format(self, context: FactoryContext, options: Mapping[str, str]) -> CsvEncodingFormat:
        return CsvEncodingFormat(_options(context, options))


def _options(context: FactoryContext, options: Mapping[str, str]) -> CsvOptions:
    quote = _character(options, QUOTE)
    has_none = option_of(options, NO_QUOTE)
    if has_none and quote is not None:
        raise ValidationError("Format cannot define a quote character and disabled quote character at the same time.")
    names = [part.name for part in context.physical_type.fields if part.name not in context.partition_keys]
    return CsvOptions(
        tuple(names),
        _character(options, DELIMITER) or ",",  # type: ignore[arg-type]
        None if has_none else quote or '"',
        _character(options, ESCAPE),
        option_of(options, NULL_LITERAL),
        option_of(options, ARRAY_DELIMITER),
        option_of(options, COMMENTS),
        option_of(options, IGNORE_ERRORS),
        not option_of(options, SCIENTIFIC),
    )


FACTORY = _Factory()
