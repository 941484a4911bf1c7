"""The options of a table as values: what cannot be read is refused with Flink's message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from firesteel.config.option import ConfigOption, InvalidConfigurationError
from firesteel.table.bound.errors import ValidationError

__all__ = ["option_of", "required_option"]

T = TypeVar("T")


def option_of(options: Mapping[str, str], option: ConfigOption[T]) -> T:
    """The value of an option, or its default.

    >>> from firesteel.config.option import ConfigOptions
    >>> option_of({"sink.parallelism": "4"}, ConfigOptions.key("sink.parallelism").int_type().no_default_value())
    4
    """
    for key in (option.key, *option.fallback_keys):
        if key in options:
            try:
                return option.convert(options[key], key)
            except InvalidConfigurationError as error:
                raise ValidationError(
                    f"Invalid value for option '{key}'.\n\nCould not parse value '{options[key]}' for key '{key}'.",
                    hint=str(error),
                ) from None
    return option.default


def required_option(options: Mapping[str, str], option: ConfigOption[T | None]) -> T:
    """The value of an option that has to be there."""
    value = option_of(options, option)
    if value is None:
        raise ValidationError(
            f"One or more required options are missing.\n\nMissing required options are:\n\n{option.key}"
        )
    return value
