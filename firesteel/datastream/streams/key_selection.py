"""Key selectors whose keys are converted: to a key type, or to a form that is the same in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.api.pickled_key import PickledKey
from firesteel.common.errors import InvalidKeyError
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.functions import KeySelector, RuntimeContext
from firesteel.process.pyflink_names import is_pyflink_program
from firesteel.runtime.codegen.functions import ConvertedFunction
from firesteel.runtime.model.key_groups import encode_key
from firesteel.types.composite_type_information import TupleTypeInfo
from firesteel.types.conversion import NEVER, Bind, Conversion, conversion_of

__all__ = ["select_keys"]

_PLAIN = frozenset({str, int, bytes, bool})
"""Classes whose objects are keys as they are."""

_PLAIN_TYPES = [
    *(Types.BOOLEAN(), Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT()),
    *(Types.STRING(), Types.CHAR(), Types.PRIMITIVE_ARRAY(Types.BYTE())),
]

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


class AnyKeySelector(KeySelector, ConvertedFunction):
    """Selects keys of any picklable type."""

    keeps_longs = True

    def __init__(self, key_selector: Selector):
        self._selector = key_selector
        self.call = key_selector.get_key if isinstance(key_selector, KeySelector) else key_selector

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
        return self.convert(self.call(value))

    def test(self, result: str, bind: Bind) -> str:
        """Writes the condition under which a key stays as it is."""
        return f"{result}.__class__ in {bind('plain', _PLAIN)}"

    def convert(self, result: Any) -> Any:
        """Returns a key, or its form if it has no canonical one."""
        return result if result.__class__ in _PLAIN else _any_key(result)


class TypedKeySelector(AnyKeySelector):
    """Selects keys of a type."""

    def __init__(self, key_selector: Selector, key_type: TypeInformation):
        super().__init__(key_selector)
        self._key_type = key_type
        self.keeps_longs = key_type == Types.LONG()
        self._conversion: Conversion | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_conversion": None}

    def test(self, result: str, bind: Bind) -> str:
        """Writes the condition under which a key is of its type, and stays as it is."""
        return self._key_conversion().test(result, bind) if _has_plain_keys(self._key_type) else NEVER

    def convert(self, result: Any) -> Any:
        """Returns a key converted to its type."""
        try:
            key = None if result is None else self._key_conversion().convert(result)
        except (TypeError, ValueError, OverflowError, AttributeError, ArithmeticError) as error:
            problem = self._key_type.validate(result) or f"{result!r}: {error}"
            raise InvalidKeyError(
                f"The key does not fit its declared type {self._key_type}: {problem}",
                hint="Correct key_type, or leave it out.",
            ) from None
        return super().convert(key)

    def _key_conversion(self) -> Conversion:
        if self._conversion is None:
            self._conversion = conversion_of(self._key_type)
        assert self._conversion is not None
        return self._conversion


def _has_plain_keys(key_type: TypeInformation) -> bool:
    """Whether all values of a type are keys as they are."""
    if isinstance(key_type, TupleTypeInfo):
        return all(field in _PLAIN_TYPES for field in key_type.get_field_types())
    return key_type in _PLAIN_TYPES


def _any_key(key: Any) -> Any:
    if key.__class__ is tuple and all(part.__class__ in _PLAIN for part in key):
        return key
    try:
        encode_key(key)
        hash(key)
    except (InvalidKeyError, TypeError):
        return PickledKey.of(key)
    return key
