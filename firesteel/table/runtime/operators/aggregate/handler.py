"""All aggregate calls of an operator: their accumulators in a state, and their results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from firesteel.runtime.state.columnar.state import MAPS, Dtype
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, InputRef
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates import AggregateBody
from firesteel.table.functions.registry import definition_of
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.runtime.operators.aggregate.accumulators import (
    Accumulator,
    Count,
    FloatSum,
    IntegerSum,
    SingleSum,
)
from firesteel.table.runtime.operators.aggregate.bodies import RowAccumulator
from firesteel.table.runtime.operators.aggregate.counters import RetractableExtreme
from firesteel.table.runtime.operators.aggregate.decimal_sum import DecimalSum
from firesteel.table.runtime.operators.aggregate.distinct import DistinctView
from firesteel.table.runtime.operators.aggregate.domains import from_floats, from_integers, is_float
from firesteel.table.runtime.operators.aggregate.extremes import EdgeValue, extreme
from firesteel.table.runtime.operators.aggregate.feeds import FeedKey, Rows, fed_rows
from firesteel.table.runtime.operators.aggregate.steps import RowOrder, Steps, fed_signs
from firesteel.types import logical as t
from firesteel.types.internal import to_column
from firesteel.types.logical import LogicalType, RowType

__all__ = ["AggregateHandler"]

Result = Callable[[Sequence[Any], Any], Any]
"""From the columns of the state and slots to a column."""

_ALL_ROWS = FeedKey(())
_EDGES = ("FIRST_VALUE", "LAST_VALUE")
_ZERO_SUMS = ("SUM0", "$SUM0")
_SUMS = ("SUM", *_ZERO_SUMS)


@dataclass
class _PlacedView:
    """Distinct values, and their column in the state."""

    view: DistinctView
    column: int

    def columns(self, columns: Sequence[Any]) -> Sequence[Any]:
        """Those of the state that are its own."""
        return columns[self.column : self.column + 1]


@dataclass
class _Placed:
    """An accumulator, the first of its columns in the state, and what feeds it."""

    accumulator: Any
    first: int
    feed: FeedKey

    def columns(self, columns: Sequence[Any]) -> Sequence[Any]:
        """Those of the state that are its own."""
        return columns[self.first : self.first + len(self.accumulator.dtypes)]


class AggregateHandler:
    """Computes the calls of one operator, with the columns of a state that has ``dtypes``.

    With ``retracts`` rows may leave: then the rows of each key are counted, and MIN, MAX and the like keep all values.
    """

    def __init__(
        self, input_type: RowType, calls: Sequence[AggregateCall], retracts: bool, session: Session | None = None
    ):
        self._input_type = input_type
        self._retracts = retracts
        self._session = session or Session()
        self._placed: dict[Hashable, _Placed] = {}
        self._views: dict[Hashable, _PlacedView] = {}
        """By arguments, and whether null is a value."""
        self.dtypes: list[Dtype] = []
        self._is_splittable = not any(call.function.upper() in _EDGES or not _merges(call) for call in calls)
        self._calls_users = any(call.definition is not None for call in calls)
        self._row_count = self._count(_ALL_ROWS) if retracts else None
        self._results = [self._result(call) for call in calls]
        self.counts_rows = any(call.function.upper() == "COUNT" and self._feed(call) == _ALL_ROWS for call in calls)
        """Whether a result changes with every row that joins."""
        if not self.dtypes:
            # DISTINCT alone: something must say that a key is there
            self._place("seen", Count, _ALL_ROWS)
        for placed in self._views.values():
            self.dtypes[placed.column] = placed.view.dtype

    # -- rows and partial results ---------------------------------------------------------------------

    def accumulate(self, columns: Sequence[Any], rows: Rows) -> None:
        """Takes up the rows of a batch, with all columns of the input."""
        fed: dict[FeedKey, Rows] = {}
        for distinct in self._views.values():
            fed.update(distinct.view.accumulated(distinct.columns(columns), rows))
        for placed in self._placed.values():
            key = placed.feed
            if key not in fed:
                fed[key] = fed_rows(rows, key)
            placed.accumulator.accumulate(placed.columns(columns), fed[key])

    def merge(self, columns: Sequence[Any], rows: Rows) -> None:
        """Takes up partial results, whose columns are those of ``partial``."""
        fed: dict[FeedKey, Rows] = {}
        at = 0
        for distinct in self._views.values():
            width = len(distinct.view.partial_types())
            part = Rows(rows.codes, None, rows.arrays[at : at + width], rows.slots)
            fed.update(distinct.view.merged(distinct.columns(columns), part))
            at += width
        for placed in self._placed.values():
            if placed.feed in fed:
                placed.accumulator.accumulate(placed.columns(columns), fed[placed.feed])
                continue
            width = len(placed.accumulator.partial_types())
            part = Rows(rows.codes, None, rows.arrays[at : at + width], rows.slots)
            placed.accumulator.merge(placed.columns(columns), part)
            at += width

    @property
    def runs(self) -> bool:
        """Whether ``run`` is supported."""
        return all(placed.accumulator.runs for placed in self._placed.values())

    def run(self, columns: Sequence[Any], rows: Rows, order: RowOrder) -> list[Any]:
        """Takes up rows one after the other; the columns after each row, of which ``results`` makes results."""
        signs: dict[FeedKey, Any] = {}
        for distinct in self._views.values():
            signs.update(distinct.view.run(distinct.columns(columns), rows))
        after: list[Any] = [None] * len(self.dtypes)
        for placed in self._placed.values():
            feed = placed.feed
            if feed not in signs:
                signs[feed] = fed_signs(rows, feed)
            steps = Steps(rows, order, signs[feed], feed.arguments)
            found = placed.accumulator.run(placed.columns(columns), steps)
            after[placed.first : placed.first + len(found)] = found
        return after

    def row_counts(self, columns: Sequence[Any], slots: Any) -> Any:
        """The numbers of rows of slots, where rows may leave."""
        assert self._row_count is not None
        (counts,) = self._row_count.columns(columns)
        return counts[slots]

    def partial(self, columns: Sequence[Any], slots: Any) -> list[Any]:
        """The accumulators of slots as columns of Arrow."""
        return [array for part, own in self._sent() for array in part.partial(own(columns), slots)]

    def partial_types(self) -> list[Any]:
        """The types of these columns."""
        return [type_ for part, _ in self._sent() for type_ in part.partial_types()]

    def _sent(self) -> list[tuple[Any, Callable[[Sequence[Any]], Sequence[Any]]]]:
        """What partial results consist of; what distinct values are fed to is computed where they are merged."""
        plain = [placed for placed in self._placed.values() if not placed.feed.is_distinct]
        views = [(placed.view, placed.columns) for placed in self._views.values()]
        return [*views, *((placed.accumulator, placed.columns) for placed in plain)]

    @property
    def is_splittable(self) -> bool:
        """Whether partial results of batches can be merged, in any order."""
        return self._is_splittable

    @property
    def calls_users(self) -> bool:
        """Whether a call is one of a function of the user, which is not asked for results of no rows."""
        return self._calls_users

    # -- results --------------------------------------------------------------------------------------

    def results(self, columns: Sequence[Any], slots: Any) -> list[Any]:
        """The results of slots, a column of Arrow for each call."""
        return [result(columns, slots) for result in self._results]

    def are_empty(self, columns: Sequence[Any], slots: Any) -> Any:
        """Which slots have no rows any more; None if rows never leave."""
        return None if self._row_count is None else self.row_counts(columns, slots) == 0

    # -- calls ----------------------------------------------------------------------------------------

    def _feed(self, call: AggregateCall, keeps_null: bool = False) -> FeedKey:
        arguments = call.arguments
        if call.function.upper() == "COUNT" and not call.distinct:
            # those that cannot be null do not matter
            arguments = tuple(index for index in arguments if self._input_type.fields[index].type.nullable)
        return FeedKey(arguments, call.filter, call.distinct, keeps_null)

    def _place(self, name: Hashable, create: Callable[[], Accumulator], feed: FeedKey) -> _Placed:
        key = (name, feed)
        if key not in self._placed:
            accumulator = create()
            if feed.is_distinct:
                self._place_distinct(feed, needs_values=not isinstance(accumulator, Count))
            self._placed[key] = _Placed(accumulator, len(self.dtypes), feed)
            self.dtypes += accumulator.dtypes
        return self._placed[key]

    def _place_distinct(self, feed: FeedKey, needs_values: bool) -> None:
        key = (feed.arguments, feed.keeps_null)
        if key not in self._views:
            view = DistinctView(self._types(feed.arguments), feed.keeps_null, self._retracts)
            self._views[key] = _PlacedView(view, len(self.dtypes))
            # known when all calls are
            self.dtypes.append(MAPS)
        self._views[key].view.add(feed, needs_values)

    def _types(self, arguments: Sequence[int]) -> list[LogicalType]:
        return [self._input_type.fields[index].type for index in arguments]

    def _count(self, feed: FeedKey) -> _Placed:
        return self._place("count", Count, feed)

    def _result(self, call: AggregateCall) -> Result:
        name = call.function.upper()
        feed = self._feed(call)
        retracts = self._retracts
        if name == "COUNT":
            return self._count_result(self._count(feed), call.type)
        if name in ("SUM", "SUM0", "$SUM0", "AVG", "$AVG_SUM", "$AVG"):
            return self._sum_result(name, call, feed)
        if name in ("MIN", "MAX"):
            (type_,) = self._types(call.arguments)
            feed = replace(feed, is_distinct=False)
            if retracts:
                return _own(self._place(name, lambda: RetractableExtreme(type_, name == "MAX"), feed))
            return _own(self._place(name, lambda: extreme(type_, name == "MAX"), feed))
        if name in _EDGES and not retracts:
            (type_,) = self._types(call.arguments)
            return _own(self._place(name, lambda: EdgeValue(type_, name == "LAST_VALUE"), feed))
        return self._body_result(call)

    def _count_result(self, count: _Placed, type_: LogicalType) -> Result:
        return lambda columns, slots: from_integers(columns[count.first][slots], None, type_)

    def _sum_result(self, name: str, call: AggregateCall, feed: FeedKey) -> Result:
        argument = self._types(call.arguments)[0]
        is_average = name in ("AVG", "$AVG")
        is_sure = not argument.nullable and feed.filter is None and not is_average
        count = None if is_sure and not feed.is_distinct else self._number(name, feed)
        feed = replace(feed, arguments=feed.arguments[:1])
        if isinstance(argument, t.DecimalType):
            return self._decimal_result(name, call, argument, feed, count or self._count(feed))
        if is_float(argument):
            kind = SingleSum if isinstance(argument, t.FloatType) and name in _SUMS else FloatSum
            total = self._place(kind, kind, feed)
            build: Any = from_floats
        else:
            total = self._place(IntegerSum, IntegerSum, feed)
            build = from_integers
        is_zero_sum = name in _ZERO_SUMS

        def result(columns: Sequence[Any], slots: Any) -> Any:
            totals = columns[total.first][slots]
            if count is None:
                return build(totals, None, call.type)
            counts = columns[count.first][slots]
            is_null = counts == 0
            if is_average:
                totals = _divided(totals, np.where(is_null, 1, counts))
            return build(totals, None if is_zero_sum or not is_null.any() else is_null, call.type)

        return result

    def _number(self, name: str, feed: FeedKey) -> _Placed:
        """How many values there are; ``$AVG`` has sums of values, and their numbers as its second argument."""
        if name == "$AVG":
            return self._place(IntegerSum, IntegerSum, replace(feed, arguments=feed.arguments[1:]))
        return self._count(feed)

    def _decimal_result(
        self, name: str, call: AggregateCall, argument: t.DecimalType, feed: FeedKey, count: _Placed
    ) -> Result:
        starts_over = name in _SUMS
        total = self._place(
            (DecimalSum, starts_over), lambda: DecimalSum(argument.scale or 0, starts_over=starts_over), feed
        )
        one = replace(call, arguments=call.arguments[:1])
        finish = self._body(one, "AVG" if name in ("AVG", "$AVG") else "SUM").result
        empty = Decimal(0) if name in _ZERO_SUMS else None

        def result(columns: Sequence[Any], slots: Any) -> Any:
            totals = total.accumulator.totals(total.columns(columns), slots)
            counts = columns[count.first][slots].tolist()
            pairs = zip(totals, counts, strict=True)
            return to_column(
                [empty if not n else None if value is None else finish([value, n]) for value, n in pairs], call.type
            )

        return result

    def _body(self, call: AggregateCall, name: str) -> AggregateBody:
        fields = self._input_type.fields
        arguments = tuple(InputRef(fields[index].type, index, fields[index].name) for index in call.arguments)
        resolved = Call(call.type, name, arguments, call.symbols, call.definition, place=call.place)
        body: Any = definition_of(resolved).row_body(resolved, self._session)
        if not isinstance(body, AggregateBody):
            raise ValidationError(f"The function {name} cannot be used in a GROUP BY.")
        return body

    def _body_result(self, call: AggregateCall) -> Result:
        name = call.function.upper()
        body = self._body(call, name)
        if self._retracts and body.retract is None:
            raise ValidationError(
                f"The function {name} does not support retraction, but its input has updates or deletions.",
                hint="Aggregate a table that only has insertions.",
            )
        types = self._types(call.arguments)
        feed = self._feed(call, body.takes_null)
        key = (name, call.symbols, call.type, call.definition)
        return _own(self._place(key, lambda: RowAccumulator(body, types, call.type), feed))


def _merges(call: AggregateCall) -> bool:
    return call.definition is None or call.definition.merges


def _own(placed: _Placed) -> Result:
    return lambda columns, slots: placed.accumulator.result(placed.columns(columns), slots)


def _divided(totals: Any, counts: Any) -> Any:
    """The quotients; those of integers are cut off towards zero."""
    if totals.dtype.kind == "f":
        return totals / counts
    quotients = totals // counts
    return quotients + ((quotients < 0) & (quotients * counts != totals))
