"""Makes the generator of a column of its type and of the options ``fields.…`` of the table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOption, ConfigOptions
from firesteel.connectors.generators import datagen_fields
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.options import option_of
from firesteel.table.connectors.datagen import generators as g
from firesteel.types import logical as t

__all__ = ["FieldOptions"]

_RANGES: dict[type[t.LogicalType], int] = {t.TinyIntType: 8, t.SmallIntType: 16, t.IntType: 32, t.BigIntType: 64}
_MONTHS = 120_000
_WORDS: dict[str, Callable[[], Any]] = {
    name.replace("_", "-"): getattr(datagen_fields, name)
    for name in ("full_name", "email", "city", "country", "sentence", "ip_address", "url", "uuid4")
}
_FLOAT = 3.4028234663852886e38


class FieldOptions:
    """Reads options; knows which it has read, and how many rows the shortest sequence has."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self.read: set[str] = set()
        self.rows: int | None = None

    def generator(self, path: str, type_: t.LogicalType) -> g.Generator:
        """The generator of a column: ``fields.NAME`` is the path."""
        kind = self._get(path, "kind", ConfigOptions.OptionBuilder.string_type, "random")
        if kind == "sequence":
            return self._sequence(path, type_)
        if kind in _WORDS:
            if not isinstance(type_, t.VarCharType):
                raise ValidationError(f"The generator kind '{kind}' makes STRING, not {type_.as_summary_string()}.")
            return self._nullable(path, type_, g.Words(_WORDS[kind]))
        if kind != "random":
            raise ValidationError(
                f"Unsupported generator kind: {kind}", hint=f"Known kinds: random, sequence, {', '.join(_WORDS)}."
            )
        return self._nullable(path, type_, self._random(path, type_))

    def _get(self, path: str, name: str, kind: Callable[[Any], Any], default: Any) -> Any:
        key = f"{path}.{name}"
        self.read.add(key)
        option: ConfigOption[Any] = kind(ConfigOptions.key(key)).no_default_value()
        value = option_of(self._options, option)
        return default if value is None else value

    def _nullable(self, path: str, type_: t.LogicalType, made: g.Generator) -> g.Generator:
        rate = self._get(path, "null-rate", ConfigOptions.OptionBuilder.float_type, 0.0)
        return g.Nullable(made, rate) if rate and type_.nullable else made

    def _sequence(self, path: str, type_: t.LogicalType) -> g.Generator:
        kinds = (*_RANGES, t.CharType, t.VarCharType, t.FloatType, t.DoubleType, t.DecimalType)
        if not isinstance(type_, kinds):
            raise ValidationError(f"Unsupported type: {type_.as_summary_string()}")
        ends = []
        for name in ("start", "end"):
            value = self._get(path, name, ConfigOptions.OptionBuilder.long_type, None)
            if value is None:
                raise ValidationError(f"Could not find required property '{path}.{name}' for sequence generator.")
            ends.append(value)
        start, end = ends
        if start > end:
            raise ValidationError(f"The sequence of '{path}' starts with {start}, after its end {end}.")
        self.rows = min(end - start + 1, end - start + 1 if self.rows is None else self.rows)
        return g.Sequence_(type_, start)

    def _random(self, path: str, type_: t.LogicalType) -> g.Generator:
        match type_:
            case t.BooleanType():
                return g.Booleans()
            case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
                half = 1 << (_RANGES[type(type_)] - 1)
                return self._integers(path, type_, -half, half - 1)
            case t.FloatType() | t.DoubleType():
                greatest = _FLOAT if isinstance(type_, t.FloatType) else sys.float_info.max
                kind = ConfigOptions.OptionBuilder.double_type
                low, high = self._get(path, "min", kind, 0.0), self._get(path, "max", kind, greatest)
                _check_range(path, low, high)
                return g.Floats(type_, low, high)
            case t.DecimalType():
                return self._decimals(path, type_)
            case t.CharType() | t.BinaryType() | t.VarCharType() | t.VarBinaryType():
                return self._texts(path, type_)
            case t.DateType() | t.TimeType():
                return g.Now(type_, isinstance(type_, t.DateType))
            case t.TimestampType() | t.LocalZonedTimestampType():
                past = self._get(path, "max-past", ConfigOptions.OptionBuilder.duration_type, Duration.of_millis(0))
                return g.Timestamps(type_, past.to_millis())
            case t.YearMonthIntervalType():
                return self._integers(path, type_, -_MONTHS, _MONTHS)
        return self._nested(path, type_)

    def _nested(self, path: str, type_: t.LogicalType) -> g.Generator:
        match type_:
            case t.RowType():
                fields = zip(type_.field_names, type_.children(), strict=True)
                return g.Rows(type_, tuple((name, self.generator(f"{path}.{name}", part)) for name, part in fields))
            case t.ArrayType():
                return g.Lists(type_, self.generator(f"{path}.element", type_.element_type), self._length(path))
            case t.MapType():
                key = self.generator(f"{path}.key", type_.key_type)
                value = self.generator(f"{path}.value", type_.value_type)
                return g.Maps(type_, key, value, self._length(path))
            case t.MultisetType():
                key = self.generator(f"{path}.element", type_.element_type)
                return g.Maps(type_, key, g.Integers(t.IntType(), 1, 10), self._length(path))
        raise ValidationError(f"Unsupported type: {type_.as_summary_string()}")

    def _length(self, path: str) -> int:
        return int(self._get(path, "length", ConfigOptions.OptionBuilder.int_type, 3))

    def _integers(self, path: str, type_: t.LogicalType, least: int, most: int) -> g.Generator:
        kind = ConfigOptions.OptionBuilder.long_type
        low, high = self._get(path, "min", kind, least), self._get(path, "max", kind, most)
        _check_range(path, low, high)
        for name, value in (("min", low), ("max", high)):
            if not least <= value <= most:
                raise ValidationError(
                    f"Invalid value for option '{path}.{name}'.\n\n{value} is no {type_.as_summary_string()}."
                )
        return g.Integers(type_, low, high)

    def _decimals(self, path: str, type_: t.DecimalType) -> g.Generator:
        assert type_.precision is not None
        assert type_.scale is not None
        factor = 10**type_.scale
        most = 10**type_.precision - 1
        kind = ConfigOptions.OptionBuilder.double_type
        low, high = self._get(path, "min", kind, None), self._get(path, "max", kind, None)
        least = 0 if low is None else int(Decimal(repr(low)) * factor)
        most = most if high is None else min(int(Decimal(repr(high)) * factor), most)
        _check_range(path, least, most)
        return g.Decimals(type_, least, most, type_.scale)

    def _texts(self, path: str, type_: t.CharType | t.BinaryType | t.VarCharType | t.VarBinaryType) -> g.Generator:
        is_text = isinstance(type_, (t.CharType, t.VarCharType))
        length = self._get(path, "length", ConfigOptions.OptionBuilder.int_type, None)
        is_variable = self._get(path, "var-len", ConfigOptions.OptionBuilder.boolean_type, False)
        name = path.removeprefix("fields.")
        if isinstance(type_, (t.CharType, t.BinaryType)):
            if length is not None:
                raise ValidationError(
                    f"Custom length for fixed-length type (CHAR/BINARY) field '{name}' is not supported."
                )
            if is_variable:
                raise ValidationError(
                    "Only supports specifying 'fields.#.var-len' option for variable-length types "
                    f"(VARCHAR/STRING/VARBINARY/BYTES). The type of field '{name}' is not within this range."
                )
        elif length is not None and length > type_.length:
            raise ValidationError(
                f"Custom length '{length}' for variable-length type (VARCHAR/STRING/VARBINARY/BYTES) field '{name}' "
                f"should be shorter than '{type_.length}' defined in the schema."
            )
        if length is None:
            length = 100 if type_.length == t.MAX_LENGTH else type_.length
        return g.Texts(length, is_variable) if is_text else g.Bytes(type_, length, is_variable)


def _check_range(path: str, low: Any, high: Any) -> None:
    if low > high:
        raise ValidationError(f"'{path}.min' ({low}) must not be greater than '{path}.max' ({high}).")
