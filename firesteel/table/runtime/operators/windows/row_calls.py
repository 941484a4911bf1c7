"""Aggregate functions over rows that come one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, InputRef
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates import AggregateBody
from firesteel.table.functions.aggregates.body import bag_key
from firesteel.table.functions.registry import definition_of
from firesteel.table.plan.nodes import AggregateCall
from firesteel.types.logical import RowType

__all__ = ["RowCalls"]

_SYNONYMS = {"SUM0": "SUM", "$SUM0": "SUM"}


class RowCalls:
    """The calls of an operator. What they have accumulated is a list with an accumulator for each.

    >>> from firesteel.types.logical import BigIntType, IntType
    >>> count = AggregateCall("COUNT", (0,), BigIntType(), "c", distinct=True)
    >>> calls = RowCalls(RowType.of(["v"], [IntType()]), [count], retracts=False)
    >>> accumulators = calls.create()
    >>> for value in (1, 1, None, 2):
    ...     calls.change(accumulators, (value,), joins=True)
    >>> calls.results(accumulators)
    (2,)
    """

    def __init__(
        self, row_type: RowType, calls: Sequence[AggregateCall], retracts: bool, session: Session | None = None
    ) -> None:
        self._calls = [_Bound(row_type, call, retracts, session or Session()) for call in calls]

    def create(self) -> list[Any]:
        """Accumulators of no rows."""
        return [call.create() for call in self._calls]

    def change(self, accumulators: list[Any], row: Sequence[Any], joins: bool) -> None:
        """A row joins or leaves."""
        for call, accumulator in zip(self._calls, accumulators, strict=True):
            call.change(accumulator, row, joins)

    def results(self, accumulators: list[Any]) -> tuple[Any, ...]:
        """The results of the calls."""
        return tuple([call.result(acc) for call, acc in zip(self._calls, accumulators, strict=True)])


class _Bound:
    """A call: its accumulator, and for DISTINCT how often each value came."""

    def __init__(self, row_type: RowType, call: AggregateCall, retracts: bool, session: Session) -> None:
        name = call.function.upper()
        fields = row_type.fields
        arguments = tuple(InputRef(fields[index].type, index, fields[index].name) for index in call.arguments)
        resolved = Call(
            call.type, _SYNONYMS.get(name, name), arguments, call.symbols, call.definition, place=call.place
        )
        body: Any = definition_of(resolved).row_body(resolved, session)
        if not isinstance(body, AggregateBody):
            raise ValidationError(f"The function {name} cannot be used in a GROUP BY.")
        if retracts and body.retract is None:
            raise ValidationError(
                f"The function {name} does not support retraction, but its input has updates or deletions.",
                hint="Aggregate a table that only has insertions.",
            )
        self._body = body
        self._call = call
        self._keys = [bag_key(fields[index].type) for index in call.arguments]
        self._empty = 0 if name in _SYNONYMS else None

    def create(self) -> list[Any]:
        return [self._body.create(), {}]

    def change(self, accumulator: list[Any], row: Sequence[Any], joins: bool) -> None:
        call = self._call
        if call.filter is not None and row[call.filter] is not True:
            return
        values = [row[index] for index in call.arguments]
        if None in values and not self._body.takes_null:
            return
        inner, counts = accumulator
        if call.distinct:
            key = tuple([None if value is None else of(value) for of, value in zip(self._keys, values, strict=True)])
            before = counts.get(key, 0)
            counts[key] = before + (1 if joins else -1)
            if not counts[key]:
                del counts[key]
            if (before if joins else counts.get(key, 0)) > 0:
                return
        if joins:
            self._body.accumulate(inner, *values)
        else:
            assert self._body.retract is not None
            self._body.retract(inner, *values)

    def result(self, accumulator: list[Any]) -> Any:
        found = self._body.result(accumulator[0])
        return self._empty if found is None else found
