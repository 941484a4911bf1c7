"""Aggregation: GROUP BY, calls of aggregate functions, and what may be selected beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from sqlglot import exp

from firesteel.table.binder.calls import cast_to
from firesteel.table.binder.grouping_functions import grouping_call, grouping_function
from firesteel.table.binder.query_expressions import QueryExpressionBinder
from firesteel.table.binder.user_functions import aggregate_name
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.functions.definition import FunctionKind
from firesteel.table.functions.json_functions import is_json
from firesteel.table.functions.registry import find_function
from firesteel.table.functions.signatures import any_nullable
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import Aggregate, AggregateCall, LogicalNode, Project, unique_names

__all__ = ["GroupedBinder", "has_aggregate", "has_aggregate_function"]

NEVER_NULL = frozenset({"COUNT", "APPROX_COUNT_DISTINCT", "COLLECT", "JSON_OBJECTAGG", "JSON_ARRAYAGG"})
"""Functions with a result even if there are no rows."""


def is_always_nullable(name: str) -> bool:
    """Whether the type of an aggregate function is one with NULL whatever its arguments are."""
    return name == "PERCENTILE" or name.startswith("BITMAP_")


def aggregate_call(node: exp.Expression) -> nodes.Call | None:
    """The call of an aggregate function that a node is, with or without FILTER."""
    inner = node.this if isinstance(node, exp.Filter) else node
    if isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls)):
        inner = inner.this
    if not isinstance(inner, nodes.Call):
        return None
    definition = inner.args.get("definition") or find_function(inner.function_name)
    return inner if definition is not None and definition.kind is FunctionKind.AGGREGATE else None


def _is_call(node: exp.Expression) -> bool:
    return aggregate_call(node) is not None or grouping_function(node) is not None


def has_aggregate(node: exp.Expression, is_aggregate: Callable[[exp.Expression], bool] = _is_call) -> bool:
    """Whether an expression has a call of an aggregate function that is not in a query, nor over a window."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
        parts = [*inner.iter_expressions(), *(node.args.get("partition_by") or ())]
        parts += [node.args["order"]] if node.args.get("order") else []
        return any(has_aggregate(part, is_aggregate) for part in parts)
    return is_aggregate(node) or any(has_aggregate(child, is_aggregate) for child in node.iter_expressions())


def has_aggregate_function(node: exp.Expression) -> bool:
    """The same without GROUPING, GROUPING_ID and GROUP_ID."""
    return has_aggregate(node, _is_function)


def _is_function(node: exp.Expression) -> bool:
    return aggregate_call(node) is not None


class GroupedBinder(QueryExpressionBinder):
    """Binds expressions over the result of an aggregation, which it collects on the way.

    The aggregation's input has the columns of its groups and of the arguments of aggregate functions; ``finish``
    returns the plan.
    """

    def __init__(self, rows: QueryExpressionBinder, group: exp.Group | None, is_aggregate: bool = True) -> None:
        """``is_aggregate`` is false if nothing but grouping functions makes the query an aggregation."""
        super().__init__(rows.scope, rows._bind_query, rows._sql, rows._session)
        self._rows = rows
        self._columns: list[Expression] = []
        self._calls: dict[AggregateCall, int] = {}
        self._is_aggregate = is_aggregate
        self._sets = _grouping_sets(group)
        keys = list(dict.fromkeys(self._key(node) for grouping in self._sets for node in grouping))
        self._keys: list[Expression] = [key for key, _ in keys]
        self._key_names = unique_names(name for _, name in keys)
        self._columns = list(self._keys)
        self._nullable = [any(key not in self._bound(grouping) for grouping in self._sets) for key in self._keys]

    def _key(self, node: exp.Expression) -> tuple[Expression, str]:
        if has_aggregate(node):
            raise ValidationError("Aggregate expression is illegal in GROUP BY clause.")
        bound = self._rows.bind(node)
        return bound, bound.name if isinstance(bound, InputRef) else "$f"

    def _bound(self, grouping: Sequence[exp.Expression]) -> list[Expression]:
        return [self._rows.bind(node) for node in grouping]

    # -- expressions over the groups ---------------------------------------------------------------------------

    def _bind(self, node: exp.Expression) -> Expression:
        found = aggregate_call(node)
        if found is not None:
            return self._aggregate(found, node)
        function = grouping_function(node)
        if function is not None:
            return self._grouping(function, node.expressions)
        if not has_aggregate(node) and not isinstance(node, (exp.Literal, exp.Null, exp.Boolean)):
            key = self._as_key(node)
            if key is not None:
                return key
        path = nodes.column_path(node)
        if path is not None:
            raise _not_grouped(".".join(path))
        return super()._bind(node)

    def _as_key(self, node: exp.Expression) -> Expression | None:
        try:
            bound = self._rows.bind(node)
        except ValidationError:
            if nodes.column_path(node) is not None:
                raise
            return None
        return self._key_reference(bound)

    def over_groups(self, column: Expression, name: str) -> Expression:
        """A column of the input as one of the groups."""
        found = self._key_reference(column)
        if found is None:
            raise _not_grouped(name)
        return found

    def _key_reference(self, bound: Expression) -> Expression | None:
        if bound not in self._keys:
            return None
        index = self._keys.index(bound)
        type_ = bound.type.copy(bound.type.nullable or self._nullable[index])
        return InputRef(type_, index, self._key_names[index])

    def _aggregate(self, node: nodes.Call, around: exp.Expression) -> Expression:
        user = node.args.get("definition")
        definition = user or find_function(node.function_name)
        assert definition is not None
        parts: list[exp.Expression] = []
        for part in node.expressions:
            if isinstance(part, exp.JSONKeyValue):
                parts += [part.this, part.expression]
            elif not isinstance(part, exp.Star):
                parts.append(part)
        if any(has_aggregate(part) for part in parts):
            raise ValidationError("Aggregate expressions cannot be nested.")
        arguments = [self._rows.bind(part) for part in parts]
        symbols = _symbols(node, around, arguments)
        inferred = definition.signature(arguments, symbols)
        columns = [
            self._input_column(cast_to(argument, type_))
            for argument, type_ in zip(arguments, inferred.arguments, strict=True)
        ]
        condition = None
        if isinstance(around, exp.Filter):
            condition = self._input_column(self._rows.bind_condition(around.expression.this, "FILTER"))
        # without groups there is a row even if there are no rows to aggregate
        may_lack_rows = (condition is not None or not self._keys) and definition.name != "ARRAY_AGG"
        may_be_null = may_lack_rows or any_nullable(arguments) or is_always_nullable(definition.name)
        nullable = definition.name not in NEVER_NULL and may_be_null
        if user is not None:
            nullable = inferred.result.nullable
        call = AggregateCall(
            definition.name if user is None else aggregate_name(user),
            tuple(columns),
            inferred.result.copy(nullable),
            f"EXPR${len(self._calls)}",
            distinct=node.args.get("quantifier") == "DISTINCT",
            filter=condition,
            symbols=symbols,
            definition=user,
            place=None if user is None else self._position(node),
        )
        return self._reference(call)

    def _grouping(self, function: str, arguments: Sequence[exp.Expression]) -> Expression:
        columns = [self._rows.bind(part) for part in arguments]
        places = [self._keys.index(column) if column in self._keys else None for column in columns]
        call = grouping_call(function, places, self._is_aggregate, len(self._calls))
        return self._reference(call)

    def _reference(self, call: AggregateCall) -> Expression:
        same = next((known for known in self._calls if _same(known, call)), call)
        index = self._calls.setdefault(same, len(self._calls))
        return InputRef(call.type, len(self._keys) + index, same.name)

    def _input_column(self, expression: Expression) -> int:
        if expression not in self._columns:
            self._columns.append(expression)
        return self._columns.index(expression)

    # -- the plan ----------------------------------------------------------------------------------------------

    def finish(self, node: LogicalNode) -> Aggregate:
        """The aggregation of a relation."""
        arguments = (
            column.name if isinstance(column, InputRef) else "$f" for column in self._columns[len(self._keys) :]
        )
        names = unique_names([*self._key_names, *arguments])
        rows = Project(node, tuple(self._columns), tuple(names))
        grouping = tuple(range(len(self._keys)))
        sets = tuple(tuple(self._keys.index(key) for key in self._bound(grouping)) for grouping in self._sets)
        return Aggregate(rows, grouping, tuple(self._calls), sets if len(sets) > 1 else None)


def _symbols(node: nodes.Call, around: exp.Expression, arguments: Sequence[Expression]) -> tuple[str, ...]:
    """The words of a call that choose what becomes of nulls, and which arguments are JSON already."""
    symbols = [] if node.args.get("on_null") is None else [str(node.args["on_null"])]
    inner = around.this if isinstance(around, exp.Filter) else around
    words = {exp.IgnoreNulls: "IGNORE", exp.RespectNulls: "RESPECT"}
    treatment = words.get(type(inner), node.args.get("null_treatment"))
    if treatment is not None:
        if node.function_name != "ARRAY_AGG":
            raise ValidationError(f"Cannot specify IGNORE NULLS or RESPECT NULLS following '{node.function_name}'.")
        symbols.append(f"{treatment} NULLS")
    if node.function_name.startswith("JSON"):
        nested = [str(index) for index, argument in enumerate(arguments) if is_json(argument)]
        symbols += [f"JSON {' '.join(nested)}"] if nested else []
    return tuple(symbols)


def _not_grouped(name: str) -> ValidationError:
    return ValidationError(f"Expression '{name}' is not being grouped.", hint="Add it to GROUP BY, or aggregate it.")


def _same(one: AggregateCall, other: AggregateCall) -> bool:
    return (one.function, one.definition, one.arguments, one.distinct, one.filter, one.symbols) == (
        other.function,
        other.definition,
        other.arguments,
        other.distinct,
        other.filter,
        other.symbols,
    )


def _grouping_sets(group: exp.Group | None) -> list[tuple[exp.Expression, ...]]:
    """The sets of a GROUP BY: the product of those of its elements."""
    sets: list[tuple[exp.Expression, ...]] = [()]
    for element in group.expressions if group is not None else ():
        sets = [(*first, *second) for first in sets for second in _sets_of(element)]
    return sets


def _sets_of(element: exp.Expression) -> Iterator[tuple[exp.Expression, ...]]:
    if isinstance(element, exp.GroupingSets):
        for part in element.expressions:
            yield from _sets_of(part)
    elif isinstance(element, exp.Rollup):
        parts = [_columns(part) for part in element.expressions]
        lengths = range(len(parts), -1, -1)
        yield from _different(tuple(column for part in parts[:length] for column in part) for length in lengths)
    elif isinstance(element, exp.Cube):
        parts = [_columns(part) for part in element.expressions]
        subsets = (chosen for length in range(len(parts), -1, -1) for chosen in combinations(parts, length))
        yield from _different(tuple(column for part in chosen for column in part) for chosen in subsets)
    else:
        yield _columns(element)


def _different(sets: Iterable[tuple[exp.Expression, ...]]) -> Iterator[tuple[exp.Expression, ...]]:
    """The sets of one ROLLUP or CUBE: those with the same columns once."""
    known: dict[frozenset[exp.Expression], tuple[exp.Expression, ...]] = {}
    for columns in sets:
        known.setdefault(frozenset(columns), columns)
    return iter(known.values())


def _columns(node: exp.Expression) -> tuple[exp.Expression, ...]:
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)
