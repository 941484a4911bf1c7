"""Conversion of an operator's results to their declared types, where PyFlink's coders convert them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.codegen.at_work import AGGREGATE, ASYNC_FUNCTION, WINDOW_FUNCTION, handles_results_of
from firesteel.runtime.model.deployment import OperatorDescriptor
from firesteel.types.conversion import Conversion, conversion_of
from firesteel.types.type_information import TypeInformation

__all__ = ["ResultConversions"]


class ResultConversions:
    """What converts the results of an operator and of its side outputs, if they have a type and that is enabled.

    Sources emit records of their type, sinks none, and what assigns timestamps passes on records that have been
    converted.
    """

    def __init__(self, descriptor: OperatorDescriptor, *, enabled: bool):
        spec = descriptor.spec
        self._enabled = enabled
        self.is_function = not (spec.get_source() or spec.get_sink() or spec.get_watermark_strategy())
        """Whether the operator calls a function that gets and returns Python objects."""
        self.main = _conversion(descriptor.output_type) if enabled and self.is_function else None
        self.check = _check(descriptor.output_type, self.main)
        """Raises an error for a value that does not fit the type; for the first records."""
        self._by_tag: dict[str, Conversion | None] = {}

    def of_tag(self, tag: OutputTag) -> Conversion | None:
        """The conversion of a side output."""
        if tag.tag_id not in self._by_tag:
            self._by_tag[tag.tag_id] = _conversion(tag.type_info) if self._enabled else None
        return self._by_tag[tag.tag_id]


def _conversion(type_info: Any) -> Conversion | None:
    """How values become values of a type, with an error that says what was expected."""
    conversion = conversion_of(type_info) if isinstance(type_info, TypeInformation) else None
    if conversion is None:
        return None
    convert_value = conversion.convert

    @handles_results_of(WINDOW_FUNCTION, AGGREGATE, ASYNC_FUNCTION)
    def convert(value: Any) -> Any:
        try:
            return convert_value(value)
        except (TypeError, ValueError, OverflowError, AttributeError, ArithmeticError) as error:
            problem = type_info.validate(value) or f"{type_info} cannot have the value {value!r}: {error}."
            raise InvalidProgramError(
                f"The result does not fit its declared type {type_info}: {problem}",
                hint="Correct output_type (type_info of a source), or leave it out.",
            ) from None

    return replace(conversion, convert=convert, change=None)


def _check(type_info: Any, conversion: Conversion | None) -> Callable[[Any], Any] | None:
    if conversion is not None:
        return conversion.convert
    validate = getattr(type_info, "validate", None)
    if validate is None:
        return None

    @handles_results_of(WINDOW_FUNCTION, AGGREGATE, ASYNC_FUNCTION)
    def check(value: Any) -> None:
        problem = validate(value)
        if problem:
            raise InvalidProgramError(
                f"The result does not fit its declared type {type_info}: {problem}",
                hint="Correct output_type (type_info of a source), or leave it out; only first records are checked.",
            )

    return check
