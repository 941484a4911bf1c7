"""Key selectors whose keys are converted: to a key type, or to a form that is the same in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.api.pickled_key import PickledKey
from firesteel.common.errors import InvalidKeyError
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.functions import KeySelector, RuntimeContext
from firesteel.process.pyflink_names import is_pyflink_program
from firesteel.runtime.model.key_groups import encode_key
from firesteel.types.conversion import conversion_of

__all__ = ["select_keys"]

_PLAIN = frozenset({str, int, bytes, bool})
"""Classes whose objects are keys as they are."""

Selector = Callable[[Any], Any] | KeySelector


def select_keys(key_selector: Selector, key_type: TypeInformation | None, *, converts: bool) -> Selector:
    """Returns a selector of the keys that a stream is partitioned by.

    With ``converts`` a key of a declared type is converted to it, as in PyFlink. With ``Types.PICKLED_BYTE_ARRAY()``,
    which is the type of keys in a PyFlink program that declares none, a key may have any picklable type. Otherwise keys
    stay as they are.
    """
    if key_type is None:
        return AnyKeySelector(key_selector) if is_pyflink_program() else key_selector
    if key_type == Types.PICKLED_BYTE_ARRAY():
        return AnyKeySelector(key_selector)
    if not converts or conversion_of(key_type) is None:
        return key_selector
    return TypedKeySelector(key_selector, key_type)


class AnyKeySelector(KeySelector):
    """Selects keys of any picklable type."""

    def __init__(self, key_selector: Selector):
        self._selector = key_selector
        self._select = key_selector.get_key if isinstance(key_selector, KeySelector) else key_selector

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the selector of the program."""
        if isinstance(self._selector, KeySelector):
            self._selector.open(runtime_context)

    def close(self) -> None:
        """Closes the selector of the program."""
        if isinstance(self._selector, KeySelector):
            self._selector.close()

    def get_key(self, value: Any) -> Any:
        """Returns the key, or its form if it has no canonical one."""
        key = self._select(value)
        return key if key.__class__ in _PLAIN else _any_key(key)


class TypedKeySelector(AnyKeySelector):
    """Selects keys of a type."""

    def __init__(self, key_selector: Selector, key_type: TypeInformation):
        super().__init__(key_selector)
        self._key_type = key_type
        self._convert: Callable[[Any], Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_convert": None}

    def get_key(self, value: Any) -> Any:
        """Returns the key converted to its type."""
        convert = self._convert
        if convert is None:
            conversion = conversion_of(self._key_type)
            assert conversion is not None
            convert = self._convert = conversion.or_none().convert
        given = self._select(value)
        try:
            key = convert(given)
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            problem = self._key_type.validate(given) or f"{given!r}: {error}"
            raise InvalidKeyError(
                f"The key does not fit its declared type {self._key_type}: {problem}",
                hint="Correct key_type, or leave it out.",
            ) from None
        return key if key.__class__ in _PLAIN else _any_key(key)


def _any_key(key: Any) -> Any:
    if key.__class__ is tuple and all(part.__class__ in _PLAIN for part in key):
        return key
    try:
        encode_key(key)
        hash(key)
    except (InvalidKeyError, TypeError):
        return PickledKey.of(key)
    return key
