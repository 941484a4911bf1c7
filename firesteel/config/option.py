"""Configuration options: a key, what its values are, a default and a description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from firesteel.common.errors import FiresteelError
from firesteel.common.time import Duration
from firesteel.config import option_values
from firesteel.config.memory_size import MemorySize

__all__ = ["ConfigOption", "ConfigOptions", "InvalidConfigurationError"]

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


class InvalidConfigurationError(FiresteelError, ValueError):
    """A configuration value that is not what its key asks for."""

    def __init__(self, key: str, value: Any, reason: str, type_name: str):
        super().__init__(
            f"Could not parse value {value!r} for key '{key}': {reason}.",
            hint=f"'{key}' requires a value of type {type_name}.",
        )
        self.key = key
        self.value = value


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """Describes one configuration parameter; made with :class:`ConfigOptions`, never changed after.

    A value is looked up under ``key`` and then under each of ``fallback_keys``.
    """

    key: str
    type_name: str
    converter: Callable[[Any], T]
    default: T
    description: str = ""
    fallback_keys: tuple[str, ...] = ()

    @property
    def has_default_value(self) -> bool:
        """Whether there is a value for a configuration that does not set it."""
        return self.default is not None

    def convert(self, value: Any, key: str | None = None) -> T:
        """The value as this option's type; InvalidConfigurationError if it is none."""
        try:
            return self.converter(value)
        except (TypeError, ValueError) as error:
            raise InvalidConfigurationError(key or self.key, value, str(error), self.type_name) from None

    def with_description(self, description: str) -> ConfigOption[T]:
        """The same option with that description."""
        return replace(self, description=description)

    def with_fallback_keys(self, *fallback_keys: str) -> ConfigOption[T]:
        """The same option, also found under further keys, in that order."""
        return replace(self, fallback_keys=self.fallback_keys + fallback_keys)

    def with_deprecated_keys(self, *deprecated_keys: str) -> ConfigOption[T]:
        """The same option, also found under keys it had before."""
        return self.with_fallback_keys(*deprecated_keys)

    def __str__(self) -> str:
        return f"Key: '{self.key}', default: {self.default} (fallback keys: {list(self.fallback_keys)})"


class ConfigOptions:
    """Builds options.

    >>> ConfigOptions.key("tmp.dir").string_type().default_value("/tmp").default
    '/tmp'
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Starts an option with that key."""
        if not key:
            raise ValueError("A configuration key cannot be empty")
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """Has the key; the next step sets the type of the values."""

        def __init__(self, key: str):
            self._key = key

        def _typed(self, name: str, to: Callable[[Any], T]) -> ConfigOptions.TypedConfigOptionBuilder[T]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, name, to)

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """True or false."""
            return self._typed("boolean", option_values.to_boolean)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number of 32 bits."""
            return self._typed("int", option_values.ToInteger(32))

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number of 64 bits."""
            return self._typed("long", option_values.ToInteger(64))

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number with fractions."""
            return self._typed("float", option_values.to_float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number with fractions."""
            return self._typed("double", option_values.to_float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Text."""
            return self._typed("string", option_values.to_text)

        def duration_type(self) -> ConfigOptions.TypedConfigOptionBuilder[Duration]:
            """A duration such as ``200 ms``."""
            return self._typed("duration (such as '200 ms')", option_values.to_duration)

        def memory_type(self) -> ConfigOptions.TypedConfigOptionBuilder[MemorySize]:
            """A memory size such as ``32 kb``."""
            return self._typed("memory size (such as '32 kb')", option_values.to_memory_size)

        def enum_type(self, enum_class: type[E]) -> ConfigOptions.TypedConfigOptionBuilder[E]:
            """A member of an Enum, by name or value."""
            return self._typed(enum_class.__name__, option_values.ToEnum(enum_class))

        def choice_type(self, *choices: str) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """One of some words."""
            return self._typed("one of " + ", ".join(choices), option_values.ToChoice(choices))

        def map_type(self) -> ConfigOptions.TypedConfigOptionBuilder[dict[str, str]]:
            """Pairs of texts such as ``a:1,b:2``."""
            return self._typed("map (such as 'a:1,b:2')", option_values.parse_map)

    class TypedConfigOptionBuilder(Generic[T]):
        """Has key and type; the last step sets the default."""

        def __init__(self, key: str, type_name: str, converter: Callable[[Any], T]):
            self._key = key
            self._type_name = type_name
            self._converter = converter

        def as_list(self) -> ConfigOptions.TypedConfigOptionBuilder[list[T]]:
            """A list of such values, such as ``a;b`` or ``[a, b]``."""
            name = f"list of {self._type_name}"
            return ConfigOptions.TypedConfigOptionBuilder(self._key, name, option_values.ToList(self._converter))

        def default_value(self, value: T) -> ConfigOption[T]:
            """The option with that default."""
            converted = self.no_default_value().convert(value)
            assert converted is not None
            return ConfigOption(self._key, self._type_name, self._converter, converted)

        def no_default_value(self) -> ConfigOption[T | None]:
            """The option without a default: None if a configuration does not set it."""
            return ConfigOption(self._key, self._type_name, self._converter, None)
