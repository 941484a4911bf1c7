"""Key and value pairs that configure a job."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, MutableMapping
from typing import Any, TypeVar, overload

from firesteel.api.notebook import html_table
from firesteel.config.option import ConfigOption, ConfigOptions, InvalidConfigurationError
from firesteel.config.option_values import parse_list, parse_map, to_bytes, to_text
from firesteel.config.redaction import HIDDEN, hide_passwords, is_sensitive

__all__ = ["HIDDEN", "Configuration", "is_sensitive", "shown"]

T = TypeVar("T")
D = TypeVar("D")


def shown(key: str, value: str) -> str:
    """The text of a value as it may be shown: without secrets, also those of values that have keys themselves.

    >>> shown("s3.secret-key", "x"), shown("pipeline.global-job-parameters", "api-key:x,topic:orders")
    ('******', '{api-key: ******, topic: orders}')
    """
    if is_sensitive(key):
        return HIDDEN
    try:
        entries = parse_map(value)
    except ValueError:
        return hide_passwords(value)
    if not any(is_sensitive(inner) for inner in entries):
        return hide_passwords(value)
    return to_text({inner: HIDDEN if is_sensitive(inner) else hide_passwords(text) for inner, text in entries.items()})


class Configuration:
    """Holds values by key; text is read as a type when a value is asked for.

    >>> from firesteel.config import pipeline_options
    >>> config = Configuration().set_string("pipeline.auto-watermark-interval", "1 s")
    >>> config.get(pipeline_options.AUTO_WATERMARK_INTERVAL).to_millis()
    1000
    """

    __slots__ = ("_data",)

    def __init__(self, other: Configuration | None = None):
        self._data: dict[str, Any] = {} if other is None else dict(other._data)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """A configuration with the entries of a dict."""
        configuration = cls()
        for key, value in map.items():
            configuration.set(key, value)
        return configuration

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """Reads ``a;b``, ``[a, b]`` or lines that start with a dash; nothing is an empty list."""
        return parse_list(value)

    def get_string(self, key: str, default_value: str) -> str:
        """The value as text."""
        return self.get(ConfigOptions.key(key).string_type().no_default_value(), default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Sets a text."""
        return self.set(ConfigOptions.key(key).string_type().no_default_value(), value)

    def get_integer(self, key: str, default_value: int) -> int:
        """The value as a whole number of 64 bits."""
        return self.get(ConfigOptions.key(key).long_type().no_default_value(), default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Sets a whole number."""
        return self.set(ConfigOptions.key(key).long_type().no_default_value(), value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The value as true or false."""
        return self.get(ConfigOptions.key(key).boolean_type().no_default_value(), default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Sets true or false."""
        return self.set(ConfigOptions.key(key).boolean_type().no_default_value(), value)

    def get_float(self, key: str, default_value: float) -> float:
        """The value as a number with fractions."""
        return self.get(ConfigOptions.key(key).double_type().no_default_value(), float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Sets a number with fractions."""
        return self.set(ConfigOptions.key(key).double_type().no_default_value(), value)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The value as bytes."""
        if key not in self._data:
            return bytearray(default_value)
        try:
            return to_bytes(self._data[key])
        except ValueError as error:
            raise InvalidConfigurationError(key, self._data[key], str(error), "bytes") from None

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Sets bytes."""
        return self.set(key, bytearray(value))

    @overload
    def get(self, option: ConfigOption[T]) -> T: ...
    @overload
    def get(self, option: ConfigOption[T | None], default: T) -> T: ...
    @overload
    def get(self, option: str, default: Any = None) -> Any: ...
    def get(self, option: ConfigOption[Any] | str, default: Any = None) -> Any:
        """The option's value, else ``default``, else the option's own default.

        For a bare key: its value just as it was set.
        """
        if isinstance(option, str):
            return self._data.get(option, default)
        key = self._find(option)
        if key is not None:
            return option.convert(self._data[key], key)
        return option.default if default is None else default

    def get_optional(self, option: ConfigOption[T]) -> T | None:
        """The option's value if it was set, else None regardless of its default."""
        key = self._find(option)
        return None if key is None else option.convert(self._data[key], key)

    def set(self, option: ConfigOption[Any] | str, value: Any) -> Configuration:
        """Sets a value; an option's value is converted at once, so that a wrong one fails here."""
        key = option.key if isinstance(option, ConfigOption) else option
        if not isinstance(key, str) or not key:
            raise TypeError(f"A configuration key must be a non-empty str, not {key!r}")
        if value is None:
            raise TypeError(f"The value of '{key}' cannot be None: remove_config('{key}') unsets it")
        self._data[key] = option.convert(value) if isinstance(option, ConfigOption) else value
        return self

    def key_set(self) -> builtins.set[str]:
        """All keys that have a value."""
        return set(self._data)

    def add_all_to_dict(self, target_dict: MutableMapping[str, Any]) -> None:
        """Copies all entries, as they are, into a dict."""
        target_dict.update(self._data)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Takes over all entries of another configuration, with a prefix to their keys if one is given."""
        self._data.update({(prefix or "") + key: value for key, value in other._data.items()})
        return self

    def contains_key(self, key: str) -> bool:
        """Whether that very key has a value."""
        return key in self._data

    def contains(self, option: ConfigOption[Any]) -> bool:
        """Whether the option has a value, under its key or one of its fallback keys."""
        return self._find(option) is not None

    def to_dict(self) -> dict[str, str]:
        """All entries as text; :meth:`from_dict` makes an equivalent configuration of it."""
        return {key: to_text(value) for key, value in self._data.items()}

    def remove_config(self, key: str | ConfigOption[Any]) -> bool:
        """Unsets a key, or an option under all of its keys; True if there was a value."""
        keys = (key,) if isinstance(key, str) else (key.key, *key.fallback_keys)
        removed = [self._data.pop(each, None) for each in keys]
        return any(value is not None for value in removed)

    def _find(self, option: ConfigOption[Any]) -> str | None:
        if option.key in self._data:
            return option.key
        return next((key for key in option.fallback_keys if key in self._data), None)

    def __deepcopy__(self, memodict: Any = None) -> Configuration:
        return Configuration(self)

    __copy__ = __deepcopy__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration) or self._data != other._data:
            return False
        # 1 == True == 1.0 in Python, but they are different settings
        return all(type(value) is type(other._data[key]) for key, value in self._data.items())

    def __hash__(self) -> int:
        return hash(frozenset(self._data))

    def __str__(self) -> str:
        entries = (f"{key}={shown(key, to_text(value))}" for key, value in self._data.items())
        return "{" + ", ".join(entries) + "}"

    def __repr__(self) -> str:
        return f"Configuration({self})"

    def _repr_html_(self) -> str:
        return html_table("Configuration", [(key, shown(key, text)) for key, text in sorted(self.to_dict().items())])
