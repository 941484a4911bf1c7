"""The FROM clause: tables, queries and joins become one relation and the scope of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from firesteel.table.binder.calls import call
from firesteel.table.binder.conditional import CONDITIONAL
from firesteel.table.binder.join_hints import NO_HINTS, JoinHints
from firesteel.table.binder.match.clauses import bind_match
from firesteel.table.binder.places import place_of
from firesteel.table.binder.query_expressions import BindQuery, QueryExpressionBinder
from firesteel.table.binder.query_scope import QueryScope
from firesteel.table.binder.scope import ScopeColumn
from firesteel.table.binder.table_functions.changelogs import CHANGELOG_FUNCTIONS, bind_changelog_function
from firesteel.table.binder.table_functions.models import MODEL_FUNCTIONS, ResolveModel, bind_ml_predict, no_models
from firesteel.table.binder.table_functions.processes import bind_process_function
from firesteel.table.binder.table_functions.windows import WINDOW_FUNCTIONS, bind_window_function
from firesteel.table.binder.user_functions import is_table_call
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef, Literal, walk
from firesteel.table.connector.lookups import LookupOptions
from firesteel.table.functions.definition import FunctionKind
from firesteel.table.parser import nodes
from firesteel.table.plan.changelogs import FromChangelog
from firesteel.table.plan.correlates import Unnest, element_columns
from firesteel.table.plan.joins import HintedJoin
from firesteel.table.plan.nodes import Filter, Join, JoinKind, LogicalNode, Project, Values
from firesteel.table.plan.subqueries import LateralJoin, Subquery
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.table.plan.time_joins import TemporalTableJoin
from firesteel.types.logical import BooleanType, RowType

__all__ = ["FromClause", "FromClauseBinder"]

COALESCE = CONDITIONAL["COALESCE"]
TRUE = Literal(BooleanType(nullable=False), True)
ONE_ROW = Values(RowType([], nullable=False), ((),))
TABLE_FUNCTIONS = {*WINDOW_FUNCTIONS, *CHANGELOG_FUNCTIONS, *MODEL_FUNCTIONS}
ResolveTable = Callable[[Sequence[str], tuple[tuple[str, str], ...]], LogicalNode]
"""The relation of a name in a catalog, with the options of a hint."""
CreateBinder = Callable[[QueryScope], QueryExpressionBinder]


class FromClause:
    """A relation and the scope of its columns."""

    def __init__(self, node: LogicalNode, scope: QueryScope, name: str | None = None) -> None:
        self.node = node
        self.scope = scope
        self.name = name
        """Of a table, its name or alias."""


class FromClauseBinder:
    """Binds tables and joins; ``outer`` is the scope of the query around this one."""

    def __init__(
        self,
        resolve_table: ResolveTable,
        bind_query: BindQuery,
        create_binder: CreateBinder,
        outer: QueryScope | None,
        sql: str,
        hints: JoinHints = NO_HINTS,
        resolve_model: ResolveModel = no_models,
    ) -> None:
        self._resolve_model = resolve_model
        self._hints = hints
        self._resolve_table = resolve_table
        self._bind_query = bind_query
        self._create_binder = create_binder
        self._outer = outer
        self._sql = sql
        self._aliases: set[str] = set()

    def bind(self, first: exp.Expression, joins: Sequence[exp.Join]) -> FromClause:
        """The first table and those joined to it, in the order of the text."""
        node: exp.Expression = first
        try:
            left = self._table(first)
            for node in joins:
                left = self._join(left, node)
        except ValidationError as error:
            raise error.at(place_of(node, self._sql)) from error.__cause__
        return left

    def bind_all(self, first: exp.Expression, joins: Sequence[exp.Join]) -> FromClause:
        """The whole clause; hints name tables in it."""
        bound = self.bind(first, joins)
        self._hints.check(self._aliases)
        return bound

    # -- tables ------------------------------------------------------------------------------------------------

    def _table(self, node: exp.Expression, in_join: bool = False) -> FromClause:
        for clause, name in (("sample", "TABLESAMPLE"), ("pivots", "PIVOT")):
            if node.args.get(clause):
                raise ValidationError(f"{name} is not supported yet.")
        if node.args.get("system_time") and not in_join:
            raise ValidationError(
                "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field",
                hint="Join the table to one that has a time attribute.",
            )
        if isinstance(node, nodes.JoinTree):
            return self.bind(node.this, node.args["joins"])
        if isinstance(node, exp.Table):
            path = [part.name for part in node.parts]
            return self._named(self._found(node, path), node.args.get("alias"), path[-1])
        if isinstance(node, nodes.BoundRelation):
            return self._named(node.this, None, None)
        if isinstance(node, exp.Subquery):
            return self._named(self._bind_query(node, self._outer), node.args.get("alias"), None)
        if isinstance(node, exp.Lateral) and not isinstance(node.this, nodes.TableFunction):
            return self._named(self._bind_query(node.this, self._outer), node.args.get("alias"), None)
        if isinstance(node, exp.Lateral) and node.this.this.function_name in {*CHANGELOG_FUNCTIONS, *MODEL_FUNCTIONS}:
            return self._named(self._table_function(node.this.this), node.args.get("alias"), None)
        if isinstance(node, nodes.TableFunction) and node.this.function_name in TABLE_FUNCTIONS:
            return self._named(self._table_function(node.this), node.args.get("alias"), None)
        if isinstance(node, nodes.MatchRecognize):
            return self._named(self._matches(node), node.args.get("alias"), None)
        if isinstance(node, exp.Unnest):
            return self._unnest(node, FromClause(ONE_ROW, QueryScope((), self._outer)), None)
        if is_table_call(node, FunctionKind.PROCESS_TABLE):
            function = node.this if isinstance(node, exp.Lateral) else node
            binder = self._create_binder(QueryScope((), None))
            place = place_of(function.this, self._sql)
            found = bind_process_function(function.this, self._argument_table, binder.bind, place)
            return self._named(found, node.args.get("alias") or function.args.get("alias"), None)
        if is_table_call(node):
            return self._call(node, FromClause(ONE_ROW, QueryScope((), self._outer)), None)
        raise ValidationError(f"{_CLAUSES.get(type(node), type(node).__name__)} in FROM is not supported yet.")

    def _found(self, node: exp.Table, path: Sequence[str]) -> LogicalNode:
        try:
            return self._resolve_table(path, _options(node))
        except ValidationError as error:
            raise error.at(place_of(node, self._sql)) from error.__cause__

    def _table_function(self, call: nodes.Call) -> LogicalNode:
        if call.function_name in MODEL_FUNCTIONS:
            return bind_ml_predict(call, self._argument_table, self._resolve_model)
        binder = self._create_binder(QueryScope((), None))
        if call.function_name in CHANGELOG_FUNCTIONS:
            bound = bind_changelog_function(call, self._argument_table, binder.bind, binder._session.is_streaming)
            return replace(bound, place=place_of(call, self._sql)) if isinstance(bound, FromChangelog) else bound
        return bind_window_function(call, self._argument_table, binder.bind, binder._session.is_streaming)

    def _matches(self, node: nodes.MatchRecognize) -> LogicalNode:
        # the names of its input are not seen outside
        outside, self._aliases = self._aliases, set()
        rows = self._table(node.this)
        alias = node.args.get("input_alias")
        if alias is not None:
            rows = self._named(rows.node, exp.TableAlias(this=alias), None)
        self._aliases = outside
        return bind_match(node, rows.node, self._create_binder(rows.scope), self._sql)

    def _argument_table(self, node: exp.Expression) -> LogicalNode:
        if isinstance(node, exp.Table):
            return self._found(node, [part.name for part in node.parts])
        if isinstance(node, nodes.BoundRelation):
            bound: LogicalNode = node.this
            return bound
        return self._bind_query(node, self._outer)

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
        found = (ScopeColumn(part.name, part.type, name) for part in fields)
        return FromClause(node, QueryScope(found, self._outer), name)

    # -- joins -------------------------------------------------------------------------------------------------

    def _join(self, left: FromClause, join: exp.Join) -> FromClause:
        if isinstance(join.this, exp.Unnest):
            return self._unnest(join.this, left, join)
        if is_table_call(join.this):
            return self._call(join.this, left, join)
        is_lateral = isinstance(join.this, exp.Lateral) and not isinstance(join.this.this, nodes.TableFunction)
        right = self._lateral(join.this, left, join) if is_lateral else self._table(join.this, in_join=True)
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
        time = join.this.args.get("system_time")
        ttls = (self._hints.ttl_ms(left.name), self._hints.ttl_ms(right.name))
        node: LogicalNode = Join(left.node, right.node, kind, condition)
        if ttls != (None, None):
            node = HintedJoin(left.node, right.node, kind, condition, *ttls)
        if is_lateral:
            node = LateralJoin(left.node, right.node, kind, condition, position=place_of(join.this, self._sql))
        if time is not None:
            column = self._create_binder(left.scope).bind(time)
            lookup = self._hints.lookup(right.name)
            node = temporal_table_join(left.node, right.node, kind, condition, column, lookup)
        columns = zip(scope.columns, node.row_type.fields, strict=True)
        typed = [ScopeColumn(column.name, part.type, column.table) for column, part in columns]
        result = QueryScope(typed, self._outer, left.scope.merged)
        for name in using:
            result.merged[name] = _merged(left.scope, right.scope, result, name, kind)
        return FromClause(node, result)

    def _lateral(self, node: exp.Lateral, left: FromClause, join: exp.Join) -> FromClause:
        """A query that may name the columns of the tables before it."""
        if join.side not in ("", "LEFT"):
            message = f"LATERAL is not supported in a {join.side} JOIN."
            raise ValidationError(message, position=place_of(node, self._sql), hint="Write CROSS or LEFT JOIN.")
        return self._named(self._bind_query(node.this, left.scope), node.args.get("alias"), None)

    def _unnest(self, node: exp.Unnest, left: FromClause, join: exp.Join | None) -> FromClause:
        """The elements of a collection, which may be a column of a table before it."""
        (argument,) = node.expressions
        collection = self._create_binder(left.scope).bind(argument)
        with_ordinality = bool(node.args.get("offset"))
        elements = element_columns(collection.type, with_ordinality)
        if elements is None:
            raise ValidationError(
                f"UNNEST takes an ARRAY, a MAP or a MULTISET, but '{collection}' is of type "
                f"{collection.type.as_summary_string()}."
            )
        return self._elements(collection, elements, with_ordinality, node.args.get("alias"), left, join)

    def _call(self, node: exp.Expression, left: FromClause, join: exp.Join | None) -> FromClause:
        """The rows that a table function makes of each row of the tables before it."""
        function = node.this if isinstance(node, exp.Lateral) else node
        bound = self._create_binder(left.scope).bind_table_call(function.this)
        elements = element_columns(bound.type, with_ordinality=False)
        assert elements is not None
        alias = node.args.get("alias") or function.args.get("alias")
        return self._elements(bound, elements, False, alias, left, join)

    def _elements(
        self,
        collection: Expression,
        elements: RowType,
        with_ordinality: bool,
        alias: exp.TableAlias | None,
        left: FromClause,
        join: exp.Join | None,
    ) -> FromClause:
        table, names = (None, []) if alias is None else (alias.name or None, [name.name for name in alias.columns])
        if names and len(names) != len(elements.fields):
            raise ValidationError(f"'{table}' has {len(elements.fields)} columns, but its alias names {len(names)}.")
        if names:
            elements = RowType.of(names, [part.type for part in elements.fields], nullable=False)
        keeps_rows = join is not None and join.side == "LEFT"
        if join is not None and join.side not in ("", "LEFT"):
            raise ValidationError(
                f"A {join.side} JOIN with UNNEST or a table function is not supported.",
                hint="Write CROSS or LEFT JOIN.",
            )
        result = Unnest(left.node, collection, elements, with_ordinality, keeps_rows)
        added = result.row_type.fields[len(left.scope.columns) :]
        columns = [ScopeColumn(own.name, part.type, table) for own, part in zip(elements.fields, added, strict=True)]
        scope = QueryScope((*left.scope.columns, *columns), self._outer, left.scope.merged)
        on = None if join is None else join.args.get("on")
        condition = None if on is None else self._create_binder(scope).bind_condition(on, "ON")
        if condition is None or condition == TRUE:
            return FromClause(result, scope)
        if not keeps_rows:
            return FromClause(Filter(result, condition), scope)
        if any(isinstance(part, Subquery) for part in walk(condition)):
            raise ValidationError("A subquery in ON of a LEFT JOIN with UNNEST is not supported.")
        return FromClause(replace(result, condition=condition), scope)

    def _using(self, left: FromClause, right: FromClause, join: exp.Join) -> list[str]:
        if join.args.get("method") == "NATURAL":
            names = {column.name for column in right.scope.columns}
            return list(dict.fromkeys(column.name for column in left.scope.columns if column.name in names))
        return [name.name for name in join.args.get("using") or ()]


_CLAUSES: dict[type[exp.Expression], str] = {
    nodes.TableFunction: "A table function",
    exp.Lateral: "A table function",
}


def temporal_table_join(
    left: LogicalNode,
    right: LogicalNode,
    kind: JoinKind,
    condition: Expression,
    time: Expression,
    lookup: LookupOptions,
) -> LogicalNode:
    """The join of rows with the version of a table at their time."""
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise ValidationError(f"Temporal table join doesn't support {kind.value} join: only INNER and LEFT.")
    if not isinstance(time, InputRef) or not (is_rowtime(time.type) or is_proctime(time.type)):
        raise ValidationError(
            "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field"
        )
    return TemporalTableJoin(left, right, kind, condition, time.index, lookup)


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
