"""Aggregates with DISTINCT are split: first by bucket of the distinct values, then the buckets of each group.

So the values of one group are spread over subtasks. Calls with other distinct columns have buckets of their own: rows
are expanded, once per set of columns. MIN and MAX have buckets too, since over changes they keep all values.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.types.logical import RowType
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()]))
>>> count = AggregateCall("COUNT", (1,), DataTypes.BIGINT(nullable=False), "n", distinct=True)
>>> print(split_distinct(Aggregate(scan, (0,), (count,)), 1024).explain())
Aggregate(groupBy=[a], partialFinalType=[FINAL], n=[$SUM0($f0)])
  Aggregate(groupBy=[a, $bucket0], partialFinalType=[PARTIAL], $f0=[COUNT(DISTINCT b)])
    Calc(select=[a, b, $BUCKET(b, 1024) AS $bucket0])
      TableScan(table=[c.d.t])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from firesteel.table.binder.calls import call
from firesteel.table.bound.nodes import Expression, Literal
from firesteel.table.functions.hashes import BUCKET
from firesteel.table.inference import decimals
from firesteel.table.plan.nodes import Aggregate, AggregateCall, DistinctSplit, LogicalNode, unique_names
from firesteel.table.plan.replicate import Expand, set_id
from firesteel.table.plan.streaming import Calc
from firesteel.table.plan.time_attributes import is_rowtime
from firesteel.table.plan.window_kinds import SessionWindow
from firesteel.table.plan.windows import WindowAggregate, WindowColumn
from firesteel.table.rules.references import references
from firesteel.types.logical import BigIntType, DecimalType, DoubleType, FloatType, IntType, LogicalType

__all__ = ["split_distinct"]

_MERGED = {"COUNT": "$SUM0", "SUM": "SUM", "SUM0": "$SUM0", "$SUM0": "$SUM0", "MIN": "MIN", "MAX": "MAX"}
"""For each function what makes a result of those of the buckets; AVG is split into a sum and a count."""
_BIGINT = BigIntType(nullable=False)
_EXTREMES = ("MIN", "MAX")


def split_distinct(node: LogicalNode, buckets: int) -> LogicalNode:
    """A node whose inputs are rewritten already."""
    if isinstance(node, Aggregate):
        is_split = node.split is None and _has_buckets(node.calls, node.grouping)
        if not is_split:
            return node
        return _Split(node, buckets).grouped() if node.grouping_sets is None else _split_sets(node, buckets)
    if isinstance(node, WindowAggregate) and _is_split_window(node) and _has_buckets(node.calls, node.keys):
        return _Split(node, buckets).windowed()
    return node


def _has_buckets(calls: Sequence[AggregateCall], keys: Sequence[int]) -> bool:
    if not all(_function(one) in _MERGED or _function(one) == "AVG" for one in calls):
        return False
    return any(_is_distinct(one) and set(one.arguments) - set(keys) for one in calls)


def _is_distinct(one: AggregateCall) -> bool:
    """Whether the result depends on values that occur more than once."""
    return one.distinct and _function(one) not in _EXTREMES


def _is_split_window(node: WindowAggregate) -> bool:
    """Windows of table functions by event time; sessions of buckets would not be those of the rows."""
    is_group_window = node.time_type.nullable
    is_plain = node.split is None and node.emit is None and not node.is_bounded and not is_group_window
    return is_plain and is_rowtime(node.time_type) and not isinstance(node.window, SessionWindow)


def _function(one: AggregateCall) -> str:
    return one.function.upper()


def _split_sets(node: Aggregate, buckets: int) -> LogicalNode:
    """GROUPING SETS are expanded first: then rows are grouped by the id of the set too, which comes last."""
    assert node.grouping_sets is not None
    sets = [frozenset(group) for group in node.grouping_sets]
    if len(set(sets)) < len(sets):
        return node
    read = {column for one in node.calls for column in _columns(one)}
    copies = tuple(sorted(read & set(node.grouping)))
    width = len(node.input.row_type.fields)
    places = {index: width + place for place, index in enumerate(copies)}
    expanded = Expand(node.input, node.grouping, node.grouping_sets, copies)
    calls = tuple(
        replace(
            one,
            arguments=tuple(places.get(index, index) for index in one.arguments),
            filter=None if one.filter is None else places.get(one.filter, one.filter),
        )
        for one in node.calls
    )
    grouping = (*node.grouping, width + len(copies))
    single = replace(node, input=expanded, grouping=grouping, grouping_sets=None, calls=calls)
    grouped = _Split(single, buckets).grouped()
    own = references(grouped)
    at = len(node.grouping)
    chosen = (*own[:at], *own[at + 1 :], own[at])
    return Calc(grouped, chosen, tuple(node.row_type.field_names))


def _columns(one: AggregateCall) -> tuple[int, ...]:
    return one.arguments if one.filter is None else (*one.arguments, one.filter)


@dataclass
class _Split:
    """The two steps of an aggregate.

    1. A column for the bucket of each distinct column.
    2. If calls have different buckets: rows once per set of buckets, and a column that says which calls take the row.
    3. The aggregate by group and buckets.
    4. The aggregate of its results by group.
    """

    node: Aggregate | WindowAggregate
    buckets: int

    def grouped(self) -> Aggregate:
        """The aggregate of the buckets of each group."""
        node = self.node
        assert isinstance(node, Aggregate)
        below, own, calls = self._partial(node.grouping)
        partial = replace(
            node,
            input=below,
            grouping=(*node.grouping, *own),
            calls=calls,
            split=DistinctSplit("PARTIAL", self.buckets),
        )
        grouping = tuple(range(len(node.grouping)))
        final = self._final(len(partial.grouping))
        return replace(node, input=partial, grouping=grouping, calls=final, split=DistinctSplit("FINAL", self.buckets))

    def windowed(self) -> WindowAggregate:
        """The aggregate of the buckets of each group of a window, which has the bounds of the window."""
        node = self.node
        assert isinstance(node, WindowAggregate)
        below, own, calls = self._partial(node.keys)
        names = below.row_type.field_names
        partial = replace(
            node,
            input=below,
            grouping=(*node.grouping, *own),
            names=(*node.names, *(names[column] for column in own)),
            calls=calls,
            split=DistinctSplit("PARTIAL", self.buckets),
        )
        grouping = tuple(
            column if isinstance(column, WindowColumn) else place for place, column in enumerate(node.grouping)
        )
        return replace(
            node,
            input=partial,
            grouping=grouping,
            calls=self._final(len(partial.grouping)),
            time=None,
            start=node.grouping.index(WindowColumn.START),
            end=node.grouping.index(WindowColumn.END),
            split=DistinctSplit("FINAL", self.buckets),
        )

    def _partial(self, keys: Sequence[int]) -> tuple[LogicalNode, tuple[int, ...], tuple[AggregateCall, ...]]:
        """The input of the first aggregate, the columns with buckets, and its calls."""
        node = self.node
        spread = [self._spread(one, keys) for one in node.calls]
        columns = sorted({column for group in spread for column in group})
        width = len(node.input.row_type.fields)
        places = {column: width + place for place, column in enumerate(columns)}
        below = self._with_buckets(columns)
        own = tuple(places.values())
        groups = sorted({tuple(places[column] for column in group) for group in spread})
        filters: list[int | None] = [one.filter for one in node.calls]
        # buckets of other columns would count the values of a group once each
        apart = {group for one, group in zip(node.calls, spread, strict=True) if _is_distinct(one) or group}
        if len(apart) > 1:
            below = Expand(below, own, tuple(groups))
            ids = [set_id(own, [places[column] for column in group]) for group in spread]
            below, filters = self._with_filters(below, ids)
        calls: list[AggregateCall] = []
        for one, place in zip(node.calls, filters, strict=True):
            # a result of rows that a filter leaves out, or of another set, is null
            for function, type_ in _partial_functions(one, node.input):
                calls.append(replace(one, function=function, type=type_, filter=place, name=f"$f{len(calls)}"))
        return below, own, tuple(calls)

    def _spread(self, one: AggregateCall, keys: Sequence[int]) -> tuple[int, ...]:
        """The columns of whose buckets a call has a result."""
        if not one.distinct and _function(one) not in _EXTREMES:
            return ()
        return tuple(sorted(set(one.arguments) - set(keys)))

    def _with_buckets(self, columns: Sequence[int]) -> LogicalNode:
        below = self.node.input
        own = references(below)
        count = Literal(IntType(nullable=False), self.buckets)
        added = [call(BUCKET, [own[column], count]) for column in columns]
        names = [f"$bucket{place}" for place in range(len(columns))]
        return Calc(below, (*own, *added), tuple(unique_names([*below.row_type.field_names, *names])))

    def _with_filters(self, below: Expand, ids: Sequence[int]) -> tuple[LogicalNode, list[int | None]]:
        """Adds for each call whether it takes a row; calls that take the same rows have one column."""
        own = references(below)
        added: dict[tuple[int, int | None], Expression] = {}
        wanted = [(number, one.filter) for number, one in zip(ids, self.node.calls, strict=True)]
        for number, column in wanted:
            test: Expression = call("EQUALS", [own[-1], Literal(_BIGINT, number)])
            added[number, column] = test if column is None else call("AND", [test, own[column]])
        kept = own[:-1]
        names = [*below.row_type.field_names[:-1], *(f"$g{place}" for place in range(len(added)))]
        order = list(added)
        calc = Calc(below, (*kept, *added.values()), tuple(unique_names(names)))
        return calc, [len(kept) + order.index(key) for key in wanted]

    def _final(self, first: int) -> tuple[AggregateCall, ...]:
        """The calls of the second aggregate; the results of the first begin at a column."""
        calls = []
        for one in self.node.calls:
            is_average = _function(one) == "AVG"
            arguments = (first, first + 1) if is_average else (first,)
            function = "$AVG" if is_average else _MERGED[_function(one)]
            calls.append(AggregateCall(function, arguments, one.type, one.name))
            first += len(arguments)
        return tuple(calls)


def _partial_functions(one: AggregateCall, below: LogicalNode) -> list[tuple[str, LogicalType]]:
    if _function(one) == "AVG":
        argument = below.row_type.fields[one.arguments[0]].type
        return [("$AVG_SUM", _sum_type(argument).copy(True)), ("COUNT", _BIGINT)]
    is_count = _function(one) == "COUNT"
    return [(one.function, one.type if is_count else one.type.copy(True))]


def _sum_type(type_: LogicalType) -> LogicalType:
    """The type of the sum of which AVG makes its result: wide enough for all integers."""
    if isinstance(type_, DecimalType):
        return decimals.total(type_)
    return DoubleType() if isinstance(type_, (FloatType, DoubleType)) else BigIntType()
