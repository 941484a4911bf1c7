"""The FROM clause: tables, queries and joins become one relation and the scope of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from firesteel.table.binder.calls import call
from firesteel.table.binder.conditional import CONDITIONAL
from firesteel.table.binder.places import place_of
from firesteel.table.binder.query_expressions import BindQuery, QueryExpressionBinder
from firesteel.table.binder.query_scope import QueryScope
from firesteel.table.binder.scope import ScopeColumn
from firesteel.table.binder.window_functions import WINDOW_FUNCTIONS, bind_window_function
from firesteel.table.expressions.errors import ValidationError
from firesteel.table.expressions.nodes import Expression, InputRef, Literal
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import Join, JoinKind, LogicalNode, Project
from firesteel.types.logical import BooleanType

__all__ = ["FromClause", "FromClauseBinder"]

COALESCE = CONDITIONAL["COALESCE"]
TRUE = Literal(BooleanType(nullable=False), True)
ResolveTable = Callable[[Sequence[str], tuple[tuple[str, str], ...]], LogicalNode]
"""The relation of a name in a catalog, with the options of a hint."""
CreateBinder = Callable[[QueryScope], QueryExpressionBinder]


class FromClause:
    """A relation and the scope of its columns."""

    def __init__(self, node: LogicalNode, scope: QueryScope) -> None:
        self.node = node
        self.scope = scope


class FromClauseBinder:
    """Binds tables and joins; ``outer`` is the scope of the query around this one."""

    def __init__(
        self,
        resolve_table: ResolveTable,
        bind_query: BindQuery,
        create_binder: CreateBinder,
        outer: QueryScope | None,
        sql: str,
    ) -> None:
        self._resolve_table = resolve_table
        self._bind_query = bind_query
        self._create_binder = create_binder
        self._outer = outer
        self._sql = sql
        self._aliases: set[str] = set()

    def bind(self, first: exp.Expression, joins: Sequence[exp.Join]) -> FromClause:
        """The first table and those joined to it, in the order of the text."""
        left = self._table(first)
        for join in joins:
            left = self._join(left, join)
        return left

    # -- tables ------------------------------------------------------------------------------------------------

    def _table(self, node: exp.Expression) -> FromClause:
        for clause, name in (("sample", "TABLESAMPLE"), ("pivots", "PIVOT"), ("system_time", "FOR SYSTEM_TIME AS OF")):
            if node.args.get(clause):
                raise ValidationError(f"{name} is not supported yet.")
        if isinstance(node, nodes.JoinTree):
            return self.bind(node.this, node.args["joins"])
        if isinstance(node, exp.Table):
            path = [part.name for part in node.parts]
            return self._named(self._found(node, path), node.args.get("alias"), path[-1])
        if isinstance(node, exp.Subquery):
            inner = self._bind_query(node, QueryScope((), self._outer))
            return self._named(inner, node.args.get("alias"), None)
        if isinstance(node, nodes.TableFunction) and node.this.function_name in WINDOW_FUNCTIONS:
            return self._named(self._window_function(node.this), node.args.get("alias"), None)
        raise ValidationError(f"{_CLAUSES.get(type(node), type(node).__name__)} in FROM is not supported yet.")

    def _found(self, node: exp.Table, path: Sequence[str]) -> LogicalNode:
        try:
            return self._resolve_table(path, _options(node))
        except ValidationError as error:
            raise error.at(place_of(node, self._sql)) from error.__cause__

    def _window_function(self, call: nodes.Call) -> LogicalNode:
        binder = self._create_binder(QueryScope((), None))
        return bind_window_function(call, self._argument_table, binder.bind)

    def _argument_table(self, node: exp.Expression) -> LogicalNode:
        if isinstance(node, exp.Table):
            return self._found(node, [part.name for part in node.parts])
        return self._bind_query(node, QueryScope((), self._outer))

    def _named(self, node: LogicalNode, alias: exp.TableAlias | None, name: str | None) -> FromClause:
        if alias is not None:
            name = alias.name
            columns = [column.name for column in alias.columns]
            if columns:
                node = renamed(node, columns, name)
        if name is not None:
            if name in self._aliases:
                raise ValidationError(f"Duplicate relation name '{name}' in FROM clause.", hint="Give one an alias.")
            self._aliases.add(name)
        fields = node.row_type.fields
        return FromClause(node, QueryScope((ScopeColumn(part.name, part.type, name) for part in fields), self._outer))

    # -- joins -------------------------------------------------------------------------------------------------

    def _join(self, left: FromClause, join: exp.Join) -> FromClause:
        right = self._table(join.this)
        kind = JoinKind(join.side or "INNER")
        is_cross = join.args.get("kind") == "CROSS"
        using = self._using(left, right, join)
        on = join.args.get("on")
        if is_cross and (on is not None or using):
            raise ValidationError("A CROSS JOIN cannot have a condition.", hint="Write JOIN … ON.")
        has_condition = on is not None or using or join.args.get("method") == "NATURAL"
        if not has_condition and not is_cross and not _is_comma(join, self._sql):
            raise ValidationError(
                "INNER, LEFT, RIGHT or FULL join requires a condition.", hint="Write JOIN … ON, or CROSS JOIN."
            )
        scope = left.scope.beside(right.scope)
        condition: Expression = TRUE
        if on is not None:
            condition = self._create_binder(scope).bind_condition(on, "ON")
        for name in using:
            pair = (_only(left.scope, name, 0), _only(right.scope, name, len(left.scope.columns)))
            equal = call("EQUALS", pair)
            condition = equal if condition is TRUE else call("AND", [condition, equal])
        node = Join(left.node, right.node, kind, condition)
        columns = zip(scope.columns, node.row_type.fields, strict=True)
        typed = [ScopeColumn(column.name, part.type, column.table) for column, part in columns]
        result = QueryScope(typed, self._outer, left.scope.merged)
        for name in using:
            result.merged[name] = _merged(left.scope, right.scope, result, name, kind)
        return FromClause(node, result)

    def _using(self, left: FromClause, right: FromClause, join: exp.Join) -> list[str]:
        if join.args.get("method") == "NATURAL":
            names = {column.name for column in right.scope.columns}
            return list(dict.fromkeys(column.name for column in left.scope.columns if column.name in names))
        return [name.name for name in join.args.get("using") or ()]


_CLAUSES: dict[type[exp.Expression], str] = {
    nodes.TableFunction: "A table function",
    nodes.MatchRecognize: "MATCH_RECOGNIZE",
    exp.Lateral: "LATERAL",
    exp.Unnest: "UNNEST",
}


def renamed(node: LogicalNode, columns: Sequence[str], table: str) -> LogicalNode:
    """The relation with other names for its columns."""
    fields = node.row_type.fields
    if len(columns) != len(fields):
        raise ValidationError(f"'{table}' has {len(fields)} columns, but its alias names {len(columns)}.")
    references = tuple(InputRef(part.type, index, part.name) for index, part in enumerate(fields))
    return Project(node, references, tuple(columns))


def _options(table: exp.Table) -> tuple[tuple[str, str], ...]:
    return tuple(
        option
        for hint in table.args.get("hints") or ()
        if isinstance(hint, nodes.HintCall) and str(hint.this).upper() == "OPTIONS"
        for option in hint.args.get("options") or ()
    )


def _is_comma(join: exp.Join, sql: str) -> bool:
    """Whether the text has a comma instead of JOIN."""
    return sql.startswith(",", join.meta.get("offset", 0))


def _only(scope: QueryScope, name: str, offset: int) -> InputRef:
    found = scope.resolve([name])
    if not isinstance(found, InputRef):
        raise ValidationError(f"Column '{name}' of USING is joined twice, which is not supported yet.")
    return InputRef(found.type, offset + found.index, name)


def _merged(left: QueryScope, right: QueryScope, joined: QueryScope, name: str, kind: JoinKind) -> Expression:
    """The value of both columns: that of the side which has a row."""
    columns = [_only(left, name, 0).index, _only(right, name, len(left.columns)).index]
    first, second = (InputRef(joined.columns[index].type, index, name) for index in columns)
    return COALESCE([first, second]) if kind.keeps_right else first
