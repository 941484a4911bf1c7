"""Selected columns: choices of columns are expanded, and expressions get their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sqlglot import exp

from firesteel.table.binder.grouping import has_aggregate
from firesteel.table.bound.errors import ValidationError
from firesteel.table.dsl.base import ExpressionBase, column_node
from firesteel.table.parser import nodes
from firesteel.types.logical import FieldsType, LogicalType

__all__ = ["named", "nodes_of", "only_names", "without_alias"]

TypeOf = Callable[[exp.Expression], LogicalType]
"""The type of an expression over the columns of a table."""


def nodes_of(expressions: Iterable[Any], method: str) -> list[exp.Expression]:
    """The nodes of the arguments of a method."""
    found = []
    for expression in expressions:
        if not isinstance(expression, ExpressionBase):
            raise TypeError(f"{method} takes expressions, not {expression!r}: write col({expression!r}) for a column.")
        found.append(expression._copy())
    return found


def named(items: Sequence[exp.Expression], columns: Sequence[str], type_of: TypeOf) -> list[exp.Expression]:
    """The items as columns with names: an expression without one is ``_c`` and its number, as in Flink."""
    result: list[exp.Expression] = []
    aggregates: list[exp.Expression] = []
    for item in _expanded(items, columns, type_of):
        aggregates += [call for call in _aggregates(item) if call not in aggregates]
        if isinstance(item, exp.Alias):
            result.append(item)
            continue
        known = _own_name(item, aggregates)
        if known is None and isinstance(item, exp.Cast) and not isinstance(item, exp.TryCast):
            operand = _own_name(item.this, aggregates)
            type_ = item.args["to"].this
            known = operand and f"{operand}-{type_.copy().as_summary_string()}"
        name = known or f"_c{len(result)}"
        result.append(exp.Alias(this=item, alias=exp.to_identifier(name, quoted=True)))
    names = [item.alias for item in result]
    for name in names:
        if names.count(name) > 1:
            raise ValidationError(f"Ambiguous column name: {name}", hint="Give one of the columns an alias.")
    return result


def only_names(items: Iterable[exp.Expression], method: str) -> list[str]:
    """The names of columns."""
    names = []
    for item in items:
        path = nodes.column_path(item)
        if path is None or len(path) != 1:
            raise ValidationError(f"{method} takes columns: col('name').")
        names.append(path[0])
    return names


def without_alias(item: exp.Expression) -> exp.Expression:
    """The expression without its name."""
    return item.this if isinstance(item, exp.Alias) else item


def _own_name(item: exp.Expression, aggregates: Sequence[exp.Expression]) -> str | None:
    """The name of a column, a field or an aggregate; None for other expressions."""
    path = nodes.column_path(item)
    if path is not None:
        return "$".join(path)
    return f"EXPR${aggregates.index(item)}" if item in aggregates else None


def _aggregates(item: exp.Expression) -> list[exp.Expression]:
    """The calls of aggregate functions in an item, and the properties of windows."""
    if isinstance(item, exp.Window):
        return []
    if isinstance(item, nodes.WindowProperty):
        return [item]
    if isinstance(item, nodes.Call) and has_aggregate(item) and not any(map(has_aggregate, item.expressions)):
        return [item]
    return [call for part in item.iter_expressions() for call in _aggregates(part)]


def _expanded(items: Sequence[exp.Expression], columns: Sequence[str], type_of: TypeOf) -> Iterator[exp.Expression]:
    for item in items:
        if isinstance(item, exp.Star):
            yield from map(column_node, columns)
        elif isinstance(item, nodes.Call) and item.function_name in ("$WITH_COLUMNS", "$WITHOUT_COLUMNS"):
            chosen = [name for part in item.expressions for name in _chosen(part, columns)]
            if item.function_name == "$WITHOUT_COLUMNS":
                chosen = [name for name in columns if name not in chosen]
            yield from map(column_node, chosen)
        elif isinstance(item, nodes.Call) and item.function_name == "$FLATTEN":
            yield from _flattened(item.expressions[0], type_of)
        else:
            yield item


def _chosen(part: exp.Expression, columns: Sequence[str]) -> Sequence[str]:
    if isinstance(part, exp.Star):
        return columns
    if isinstance(part, nodes.Call) and part.function_name == "$RANGE":
        first, last = (_index(end, columns) for end in part.expressions)
        if first > last:
            raise ValidationError(f"The range of columns ends before it begins: {part.expressions}.")
        return columns[first : last + 1]
    return [columns[_index(part, columns)]]


def _index(part: exp.Expression, columns: Sequence[str]) -> int:
    if isinstance(part, exp.Literal) and not part.is_string:
        number = int(part.this)
        if not 1 <= number <= len(columns):
            raise ValidationError(f"There is no column {number}; the table has {len(columns)}.")
        return number - 1
    (name,) = only_names([part], "A choice of columns")
    if name not in columns:
        raise ValidationError(f"Cannot resolve field [{name}], input field list:[{', '.join(columns)}].")
    return columns.index(name)


def _flattened(row: exp.Expression, type_of: TypeOf) -> Iterator[exp.Expression]:
    type_ = type_of(row)
    if not isinstance(type_, FieldsType):
        yield row
        return
    path = nodes.column_path(row)
    for index, name in enumerate(type_.field_names):
        part = exp.Bracket(this=row.copy(), expressions=[exp.Literal.number(index + 1)])
        if path is None:
            yield part
        else:
            yield exp.Alias(this=part, alias=exp.to_identifier(f"{'$'.join(path)}${name}", quoted=True))
