"""Running sums, minima and maxima of a field, for KeyedStream."""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from firesteel.common.types import Row
from firesteel.datastream.functions import ReduceFunction

__all__ = ["AccumulateType", "FieldAggregation"]


class AccumulateType(Enum):
    """What is done with the field."""

    MIN = 1
    MAX = 2
    MIN_BY = 3
    MAX_BY = 4
    SUM = 5


_COMBINE: dict[AccumulateType, Callable[[Any, Any], Any]] = {
    AccumulateType.MIN: min,
    AccumulateType.MAX: max,
    AccumulateType.SUM: operator.add,
}


class FieldAggregation(ReduceFunction):
    """Reduces two records by one field.

    SUM, MIN and MAX change that field and keep the others of the first record; MIN_BY and MAX_BY keep one of
    the two records whole, the first if the field is equal. Records are never changed in place: they may be on
    their way to another operator already.
    """

    def __init__(self, position: int | str, accumulate_type: AccumulateType):
        if isinstance(position, bool) or not isinstance(position, (int, str)):
            raise TypeError(
                "The field to aggregate must be given as a position (int) or a name (str), "
                f"got {type(position).__name__}."
            )
        self.position = position
        self.accumulate_type = accumulate_type

    @property
    def associative_reduction(self) -> tuple[str, int | str] | None:
        """What is done with which field, where that can as well be done to parts of the records first."""
        return (self.accumulate_type.name.lower(), self.position) if self.accumulate_type in _COMBINE else None

    def reduce_all(self, current: Any, values: Iterable[Any]) -> Any:
        """What ``reduce`` gives for one record after the other; ``current`` is None if there is none yet."""
        kind, position, remaining = self.accumulate_type, self.position, iter(values)
        if current is None:
            current = next(remaining)
        if current.__class__ is not tuple or position.__class__ is not int or kind not in _COMBINE:
            for value in remaining:
                current = self.reduce(current, value)
            return current
        combine = _COMBINE[kind]
        field = current[position]
        if kind is AccumulateType.SUM:
            for value in remaining:
                field = field + value[position]
        else:
            for value in remaining:
                field = combine(field, value[position])
        changed = list(current)
        changed[position] = field
        return tuple(changed)

    def reduce(self, value1: Any, value2: Any) -> Any:
        """The first record combined with the second."""
        kind, position = self.accumulate_type, self.position
        if value1.__class__ is tuple and position.__class__ is int and kind in _COMBINE:  # by far the most frequent
            changed = list(value1)
            changed[position] = _COMBINE[kind](value1[position], value2[position])
            return tuple(changed)
        first, second = get_field(value1, position), get_field(value2, position)
        if kind is AccumulateType.MIN_BY:
            return value2 if second < first else value1
        if kind is AccumulateType.MAX_BY:
            return value2 if second > first else value1
        return with_field(value1, position, _COMBINE[kind](first, second))


def get_field(record: Any, position: int | str) -> Any:
    """A field of a record; position 0 of a record without fields is the record itself."""
    if isinstance(record, (tuple, list)):
        return getattr(record, position) if isinstance(position, str) else record[position]
    if isinstance(record, (Row, dict)):
        return record[position]
    if isinstance(position, str) and hasattr(record, position):
        return getattr(record, position)
    if dataclasses.is_dataclass(record) and isinstance(position, int):
        return getattr(record, dataclasses.fields(record)[position].name)
    if position == 0:
        return record
    raise TypeError(
        f"A {type(record).__name__} has no field {position!r}: of a record without fields only position 0, "
        "the record itself, can be aggregated."
    )


def with_field(record: Any, position: int | str, value: Any) -> Any:
    """A copy of a record with one field changed."""
    if type(record) is tuple and isinstance(position, int):
        changed = list(record)
        changed[position] = value
        return tuple(changed)
    if isinstance(record, tuple):
        name = position if isinstance(position, str) else record._fields[position]  # type: ignore[attr-defined]
        return record._replace(**{name: value})  # type: ignore[attr-defined]
    if isinstance(record, (list, dict, Row)):
        changed_record: Any = copy.copy(record)
        changed_record[position] = value
        return changed_record
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        name = position if isinstance(position, str) else dataclasses.fields(record)[position].name
        return dataclasses.replace(record, **{name: value})
    if isinstance(position, str):
        changed_object = copy.copy(record)
        setattr(changed_object, position, value)
        return changed_object
    return value
