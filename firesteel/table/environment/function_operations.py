"""The methods of tables that apply functions of users: map, flat_map, aggregate, flat_aggregate, join_lateral."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.dsl.base import ExpressionBase, column_node
from firesteel.table.dsl.expression import Expression
from firesteel.table.environment.planning.selection import nodes_of
from firesteel.table.functions.definition import FunctionKind
from firesteel.table.parser import nodes
from firesteel.table.user_functions.definition import definition_of_wrapper
from firesteel.table.user_functions.wrappers import UserDefinedFunctionWrapper
from firesteel.types.logical import ArrayType, FieldsType

if TYPE_CHECKING:
    from firesteel.table.environment.grouped_tables import GroupedTable, WindowGroupedTable
    from firesteel.table.environment.table import Table

__all__ = ["AggregatedTable", "FlatAggregateTable", "FunctionOperations", "WindowAggregatedTable"]

_RESULT = "$result"


class FunctionOperations:
    """What a table does with functions of users."""

    def map(self: Any, func: Any) -> Table:
        """The row that a scalar function makes of each row; a function alone takes the row."""
        call, _ = _call_of(func, self, "map", FunctionKind.SCALAR)
        made: Table = self._selected([_named(call, _RESULT)])
        return _flattened(made, (), None)

    def flat_map(self: Any, func: Any) -> Table:
        """The rows that a table function makes of each row; a function alone takes the row."""
        call, names = _call_of(func, self, "flat_map", FunctionKind.TABLE)
        joined: Table = self._lateral(call, names, "", None)
        columns = joined._columns()[len(self._columns()) :]
        shown = names or _field_names(call)
        return joined._selected([_named(column_node(own), name) for own, name in zip(columns, shown, strict=True)])

    def join_lateral(self: Any, table_function_call: Any, join_predicate: Expression[Any] | None = None) -> Table:
        """Each row beside the rows that a table function makes of it."""
        call, names = _call_of(table_function_call, self, "join_lateral", FunctionKind.TABLE)
        found: Table = self._lateral(call, names, "", join_predicate)
        return found

    def left_outer_join_lateral(
        self: Any, table_function_call: Any, join_predicate: Expression[Any] | None = None
    ) -> Table:
        """Each row beside the rows that a table function makes of it, or nulls if it makes none."""
        call, names = _call_of(table_function_call, self, "left_outer_join_lateral", FunctionKind.TABLE)
        found: Table = self._lateral(call, names, "LEFT", join_predicate)
        return found

    def aggregate(self: Any, func: Any) -> AggregatedTable:
        """Aggregates all rows with an aggregate function; ``select`` follows."""
        grouped: GroupedTable = self.group_by()
        return grouped.aggregate(func)

    def flat_aggregate(self: Any, func: Any) -> FlatAggregateTable:
        """Aggregates all rows with a table aggregate function; ``select`` follows."""
        grouped: GroupedTable = self.group_by()
        return grouped.flat_aggregate(func)

    def _lateral(
        self: Any, call: exp.Expression, names: Sequence[str], side: str, predicate: Expression[Any] | None
    ) -> Table:
        columns = list(names) or _field_names(call)
        for name in columns:
            if name in self._columns() and names:
                raise ValidationError(f"Ambiguous column name: {name}", hint="Give the function another alias.")
        alias = exp.TableAlias(
            this=exp.to_identifier("$function", quoted=True),
            columns=[exp.to_identifier(name, quoted=True) for name in columns],
        )
        lateral = exp.Lateral(this=nodes.TableFunction(this=call, explicit=True), alias=alias)
        join = exp.Join(this=lateral)
        if side:
            join.set("side", side)
        if predicate is not None:
            (condition,) = nodes_of([predicate], "A join")
            join.set("on", condition)
        elif side:
            join.set("on", exp.Boolean(this=True))
        else:
            join.set("kind", "CROSS")
        found: Table = self._of(self._all(joins=[join]))
        return found


class AggregatedTable:
    """A table to which an aggregate function has been applied; ``select`` chooses columns."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def select(self, *fields: Any) -> Table:
        """The columns of each group: its values and the results of the function."""
        return self._table.select(*fields)


class FlatAggregateTable(AggregatedTable):
    """A table to which a table aggregate function has been applied; ``select`` chooses columns."""


class WindowAggregatedTable:
    """A table to whose windows an aggregate function has been applied; ``select`` chooses columns."""

    def __init__(self, grouped: WindowGroupedTable, func: Any, is_flat: bool) -> None:
        self._grouped = grouped
        self._func = func
        self._is_flat = is_flat

    def select(self, *fields: Any) -> Table:
        """The columns of each window and group."""
        items = nodes_of(fields, "select")
        found: list[nodes.WindowProperty] = []
        for item in items:
            found += [node for node in item.find_all(nodes.WindowProperty) if node not in found]
        names = [f"${node.args['name'].lower()}" for node in found]
        properties = [_named(node.copy(), name) for node, name in zip(found, names, strict=True)]
        table = aggregated(self._grouped, self._func, self._is_flat, properties)

        def replaced(node: exp.Expression) -> exp.Expression:
            return column_node(names[found.index(node)]) if node in found else node  # type: ignore[arg-type]

        return table.select(*(Expression(item.transform(replaced)) for item in items))


def aggregated(grouped: Any, func: Any, is_flat: bool, others: Sequence[exp.Expression] = ()) -> Table:
    """The groups with the columns that an aggregate, or table aggregate, function makes of each."""
    table = grouped._table
    kind = FunctionKind.TABLE_AGGREGATE if is_flat else FunctionKind.AGGREGATE
    call, names = _call_of(func, table, "flat_aggregate" if is_flat else "aggregate", kind)
    keys = list(grouped._keys)
    if is_flat:
        call.set("definition", replace(call.args["definition"], kind=FunctionKind.AGGREGATE))
    made = grouped.select(*(Expression(item.copy()) for item in (*keys, *others)), Expression(_named(call, _RESULT)))
    kept = [name for name in made._columns() if name != _RESULT]
    if not is_flat:
        return _flattened(made, kept, names or None)
    elements = _elements(made)
    shown = names or list(elements.field_names)
    alias = exp.TableAlias(
        this=exp.to_identifier("$rows", quoted=True),
        columns=[exp.to_identifier(f"${name}", quoted=True) for name in shown],
    )
    unnest = exp.Unnest(expressions=[column_node(_RESULT)], alias=alias)
    rows = made._of(made._all(joins=[exp.Join(this=unnest, kind="CROSS")]))
    items = [column_node(name) for name in kept]
    found: Table = rows._selected([*items, *(_named(column_node(f"${name}"), name) for name in shown)])
    return found


def _elements(table: Table) -> FieldsType:
    type_ = table._plan.row_type.fields[-1].type
    assert isinstance(type_, ArrayType)
    assert isinstance(type_.element_type, FieldsType)
    return type_.element_type


def _flattened(table: Table, kept: Sequence[str], names: Sequence[str] | None) -> Table:
    """The table with the fields of its last column as columns, if that is a row."""
    type_ = table._plan.row_type.fields[-1].type
    items = [column_node(name) for name in kept]
    if not isinstance(type_, FieldsType):
        name = names[0] if names else "_c0" if not kept else "f0"
        return table._selected([*items, _named(column_node(_RESULT), name)])
    shown = names or list(type_.field_names)
    if len(shown) != len(type_.field_names):
        raise ValidationError(f"The function has {len(type_.field_names)} columns, but its alias names {len(shown)}.")
    for index, name in enumerate(shown):
        part = exp.Bracket(this=column_node(_RESULT), expressions=[exp.Literal.number(index + 1)])
        items.append(_named(part, name))
    return table._selected(items)


def _call_of(func: Any, table: Any, method: str, kind: FunctionKind) -> tuple[nodes.Call, list[str]]:
    """The call of a function, and the names of its columns; a function alone takes a row."""
    names: list[str] = []
    if isinstance(func, UserDefinedFunctionWrapper):
        names = list(func._alias_names)
        definition = definition_of_wrapper(func._set_takes_row_as_input())
        arguments = [column_node(name) for name in table._columns()]
        node: exp.Expression = nodes.Call(this=definition.name, expressions=arguments, definition=definition)
    elif isinstance(func, ExpressionBase):
        node = func._copy()
    else:
        raise TypeError(f"{method} takes a function, or the call of one, not {func!r}.")
    if isinstance(node, exp.Alias):
        node, names = node.this, [node.alias]
    elif isinstance(node, exp.Aliases):
        node, names = node.this, [name.name for name in node.expressions]
    if isinstance(node, nodes.Call):
        table._session.mark(node)
        found = node.args.get("definition")
        if found is not None and found.kind is kind:
            return node, names
    raise ValidationError(f"{method} takes the call of a {kind.value} function of the user.")


def _field_names(call: exp.Expression) -> list[str]:
    return list(call.args["definition"].columns.field_names)


def _named(node: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))
