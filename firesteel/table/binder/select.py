"""SELECT: WHERE, grouping, HAVING, the selected columns, DISTINCT, and the columns by which ORDER BY sorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from firesteel.table.binder.from_clause import FromClause
from firesteel.table.binder.group_windows import bind_group_window
from firesteel.table.binder.grouping import GroupedBinder, has_aggregate, has_aggregate_function
from firesteel.table.binder.grouping_functions import with_grouping_functions
from firesteel.table.binder.over import OverBinder, has_window, sort_key
from firesteel.table.binder.query_expressions import QueryExpressionBinder
from firesteel.table.binder.scope import field_of
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import Aggregate, Filter, LogicalNode, Project, SortKey, unique_names
from firesteel.types.logical import FieldsType

__all__ = ["Rows", "SelectBinder", "sort_key", "sort_ordinal"]


class Rows(NamedTuple):
    """The rows of a query, and how they are to be sorted."""

    node: LogicalNode
    width: int
    """How many columns the query has; those after them are there for the sake of the order."""
    keys: Sequence[SortKey] = ()


class SelectBinder:
    """Binds one SELECT over the relation of its FROM clause."""

    def __init__(
        self, select: exp.Select, source: FromClause, rows: QueryExpressionBinder, state_ttl_ms: int | None = None
    ) -> None:
        """``state_ttl_ms`` is how long groups are kept, if a hint says so."""
        self._select = select
        self._source = source
        self._rows = rows
        self._state_ttl_ms = state_ttl_ms

    def bind(self, order: Sequence[exp.Ordered]) -> Rows:
        """The rows of the SELECT, with the columns by which they are sorted."""
        select, node = self._select, self._source.node
        where = select.args.get("where")
        if where is not None:
            if has_window(where.this):
                raise ValidationError(
                    "Windowed aggregate expression is illegal in WHERE clause.",
                    position=self._rows._position(where.this),
                    hint="Write QUALIFY.",
                )
            if has_aggregate(where.this):
                raise ValidationError(
                    "Aggregate expression is illegal in WHERE clause.",
                    position=self._rows._position(where.this),
                    hint="Write HAVING.",
                )
            node = Filter(node, self._rows.bind_condition(where.this, "WHERE"))
        windowed = bind_group_window(select, node, self._rows)
        if windowed is not None:
            self._select, node, self._rows = windowed
            select = self._select
        group, having, qualify = (select.args.get(clause) for clause in ("group", "having", "qualify"))
        if having is not None and has_window(having.this):
            raise ValidationError("Windowed aggregate expression is illegal in HAVING clause.", hint="Write QUALIFY.")
        parts = [*select.expressions, *order, *([] if qualify is None else [self._without_aliases(qualify.this)])]
        is_grouped = group is not None or having is not None or any(map(has_aggregate, parts))
        is_aggregate = group is not None or having is not None or any(map(has_aggregate_function, parts))
        inner = GroupedBinder(self._rows, group, is_aggregate) if is_grouped else self._rows
        over = OverBinder(inner, select.args.get("windows") or ()) if any(map(has_window, parts)) else None
        binder = over or inner
        names, expressions = self._items(binder)
        keys, hidden = self._order(order, names, expressions, binder)
        chosen = [] if qualify is None else [self._qualify(parts[-1], binder)]
        condition = None if having is None else inner.bind_condition(having.this, "HAVING")
        if isinstance(inner, GroupedBinder):
            node = with_grouping_functions(replace(inner.finish(node), state_ttl_ms=self._state_ttl_ms))
        if condition is not None:
            node = Filter(node, condition)
        if over is not None:
            node, resolved = over.finish(node, [*expressions, *hidden, *chosen])
            width = len(expressions)
            expressions, hidden = resolved[:width], resolved[width : width + len(hidden)]
            node = Filter(node, resolved[-1]) if chosen else node
        hidden_names = (f"$sort{index}" for index in range(len(hidden)))
        node = Project(node, (*expressions, *hidden), tuple(unique_names([*names, *hidden_names])))
        if select.args.get("distinct") is not None:
            if hidden:
                raise ValidationError(f"Expression '{hidden[0]}' is not in the select clause.")
            node = Aggregate(node, tuple(range(len(expressions))), state_ttl_ms=self._state_ttl_ms)
        return Rows(node, len(expressions), keys)

    def _qualify(self, node: exp.Expression, binder: QueryExpressionBinder) -> Expression:
        if not has_window(node):
            raise ValidationError("QUALIFY expression must contain a window function", hint="Write WHERE or HAVING.")
        return binder.bind_condition(node, "QUALIFY")

    # -- selected columns --------------------------------------------------------------------------------------

    def _items(self, binder: QueryExpressionBinder) -> tuple[list[str], list[Expression]]:
        names: list[str] = []
        expressions: list[Expression] = []
        for item in self._select.expressions:
            for name, expression in self._item(item, binder, len(expressions)):
                names.append(name)
                expressions.append(expression)
        return unique_names(names), expressions

    def _item(self, item: exp.Expression, binder: QueryExpressionBinder, position: int) -> list[tuple[str, Expression]]:
        alias = item.alias if isinstance(item, exp.Alias) else None
        node = item.this if isinstance(item, exp.Alias) else item
        path = ("*",) if isinstance(node, exp.Star) else nodes.column_path(node)
        if path is not None and path[-1] == "*":
            return self._star(path[:-1], binder)
        bound = binder.bind(node)
        return [(alias or (path[-1] if path is not None else f"EXPR${position}"), bound)]

    def _star(self, tables: Sequence[str], binder: QueryExpressionBinder) -> list[tuple[str, Expression]]:
        scope = self._source.scope
        table = tables[-1] if tables else None
        chosen = [index for index, column in enumerate(scope.columns) if table in (None, column.table)]
        if not chosen and table is not None and (fields := self._fields(tables)) is not None:
            return self._over_groups(fields, binder)
        if not chosen:
            raise ValidationError(f"Unknown identifier '{table}.*'." if table else "SELECT * requires a FROM clause.")
        merged = scope.merged if table is None else {}
        found: list[tuple[str, Expression]] = list(merged.items())
        for index in chosen:
            column = scope.columns[index]
            if column.name not in merged:
                found.append((column.name, InputRef(column.type, index, column.name)))
        return self._over_groups(found, binder)

    def _over_groups(
        self, found: list[tuple[str, Expression]], binder: QueryExpressionBinder
    ) -> list[tuple[str, Expression]]:
        grouped = binder.inner if isinstance(binder, OverBinder) else binder
        if isinstance(grouped, GroupedBinder):
            return [(name, grouped.over_groups(expression, name)) for name, expression in found]
        return found

    def _fields(self, path: Sequence[str]) -> list[tuple[str, Expression]] | None:
        """The fields of a row, which ``path.*`` selects; None if there is no such row."""
        try:
            row = self._source.scope.resolve(path)
        except ValidationError:
            return None
        if not isinstance(row.type, FieldsType):
            return None
        return [(name, field_of(row, name)) for name in row.type.field_names]

    # -- ORDER BY ----------------------------------------------------------------------------------------------

    def _order(
        self,
        items: Sequence[exp.Ordered],
        names: Sequence[str],
        expressions: Sequence[Expression],
        binder: QueryExpressionBinder,
    ) -> tuple[list[SortKey], list[Expression]]:
        """The keys, and the expressions among them that are not selected."""
        keys: list[SortKey] = []
        columns = list(expressions)
        for item in items:
            index = sort_ordinal(item.this, names)
            if index is None:
                bound = binder.bind(self._without_aliases(item.this))
                if bound not in columns:
                    columns.append(bound)
                index = columns.index(bound)
            keys.append(sort_key(item, index, columns[index].type))
        return keys, columns[len(expressions) :]

    def _without_aliases(self, node: exp.Expression) -> exp.Expression:
        """The expression with what aliases of selected columns stand for."""
        items = {item.alias: item.this for item in self._select.expressions if isinstance(item, exp.Alias)}

        def replaced(part: exp.Expression) -> exp.Expression:
            path = nodes.column_path(part)
            return items[path[0]].copy() if path is not None and len(path) == 1 and path[0] in items else part

        return node.transform(replaced) if items else node


def sort_ordinal(node: exp.Expression, names: Sequence[str]) -> int | None:
    """The selected column that an item of ORDER BY means by its number or name; None if it is another expression."""
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        index = int(node.this) - 1
        if not 0 <= index < len(names):
            raise ValidationError("Ordinal out of range.")
        return index
    path = nodes.column_path(node)
    return names.index(path[0]) if path is not None and len(path) == 1 and path[0] in names else None
