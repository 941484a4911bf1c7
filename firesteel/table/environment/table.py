"""Table: a query of a table environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.dsl.base import column_node, ordered_node
from firesteel.table.dsl.expression import Expression
from firesteel.table.dsl.windows import GroupWindow, OverWindow
from firesteel.table.environment.function_operations import FunctionOperations
from firesteel.table.environment.grouped_tables import GroupedTable, GroupWindowedTable, OverWindowedTable
from firesteel.table.environment.planning.inserts import sink_of
from firesteel.table.environment.planning.selection import named, nodes_of, only_names
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import dataframe_of, execute_inserts, execute_query, schema_of
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.statements.explain import explain_plans
from firesteel.table.environment.table_pipeline import TablePipeline
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.parser import nodes
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.table_schema import TableSchema
from firesteel.types.logical import LogicalType

if TYPE_CHECKING:
    from firesteel.table.environment.environment import TableEnvironment

__all__ = ["Table"]


class _Sorted(NamedTuple):
    """The order of a table, to which OFFSET and FETCH may be added."""

    plan: LogicalNode
    keys: tuple[exp.Expression, ...] = ()
    offset: int | None = None
    fetch: int | None = None


class Table(FunctionOperations):
    """The rows of a query: nothing is computed before it is executed or written.

    >>> from firesteel.table import EnvironmentSettings, TableEnvironment
    >>> from firesteel.table.expressions import col
    >>> table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> orders = table_env.from_elements([("a", 3), ("b", 4), ("a", 5)], ["item", "amount"])
    >>> totals = orders.group_by(col("item")).select(col("item"), col("amount").sum.alias("total"))
    >>> totals.get_resolved_schema().get_column_names()
    ['item', 'total']
    """

    def __init__(
        self,
        plan: LogicalNode,
        session: TableSession,
        environment: TableEnvironment,
        sorted_: _Sorted | None = None,
    ) -> None:
        self._plan = plan
        self._session = session
        self._t_env = environment
        self._sorted = sorted_

    # -- columns -----------------------------------------------------------------------------------------------

    def select(self, *fields: Expression[Any]) -> Table:
        """The values of expressions for each row; with aggregate functions, one row of all rows."""
        return self._selected(nodes_of(fields, "select"))

    def alias(self, field: str, *fields: str) -> Table:
        """The table with other names of its first columns."""
        names = [field, *fields]
        columns = self._columns()
        if len(names) > len(columns):
            raise ValidationError("Aliasing more fields than we actually have.")
        return self._selected(
            [_as(column, name) for column, name in zip(columns, [*names, *columns[len(names) :]], strict=True)]
        )

    def add_columns(self, *fields: Expression[Any]) -> Table:
        """The table with more columns at its end."""
        return self._selected([exp.Star(), *nodes_of(fields, "add_columns")])

    def add_or_replace_columns(self, *fields: Expression[Any]) -> Table:
        """The table with more columns; those with the name of one that is there take its place."""
        items = nodes_of(fields, "add_or_replace_columns")
        columns = self._columns()
        new = {item.alias: item for item in items if isinstance(item, exp.Alias) and item.alias in columns}
        others = [item for item in items if not isinstance(item, exp.Alias) or item.alias not in columns]
        return self._selected([*(new.get(column) or column_node(column) for column in columns), *others])

    def rename_columns(self, *fields: Expression[Any]) -> Table:
        """The table with other names of some columns: ``col("a").alias("b")``."""
        names = {}
        for item in nodes_of(fields, "rename_columns"):
            if not isinstance(item, exp.Alias):
                raise ValidationError("rename_columns takes columns with an alias: col('a').alias('b').")
            (old,) = only_names([item.this], "rename_columns")
            self._require(old)
            names[old] = item.alias
        return self._selected([_as(column, names.get(column, column)) for column in self._columns()])

    def drop_columns(self, *fields: Expression[Any]) -> Table:
        """The table without some columns."""
        dropped = only_names(nodes_of(fields, "drop_columns"), "drop_columns")
        for name in dropped:
            self._require(name)
        return self._selected([column_node(column) for column in self._columns() if column not in dropped])

    # -- rows --------------------------------------------------------------------------------------------------

    def filter(self, predicate: Expression[Any]) -> Table:
        """The rows for which a condition is true."""
        (condition,) = nodes_of([predicate], "filter")
        return self._of(self._all(where=exp.Where(this=condition)))

    def where(self, predicate: Expression[Any]) -> Table:
        """The rows for which a condition is true."""
        return self.filter(predicate)

    def distinct(self) -> Table:
        """Different rows, each once."""
        return self._of(self._all(distinct=exp.Distinct()))

    def group_by(self, *fields: Expression[Any]) -> GroupedTable:
        """Groups the rows by some values; ``select`` with aggregate functions follows."""
        return GroupedTable(self, nodes_of(fields, "group_by"))

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Assigns rows to windows of time; ``group_by`` with the window's alias follows."""
        if not isinstance(window, GroupWindow):
            raise TypeError("window takes a window with an alias: Tumble.over(...).on(...).alias('w').")
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Defines windows around each row, for ``over`` in the ``select`` that follows."""
        for window in over_windows:
            if not isinstance(window, OverWindow):
                raise TypeError("over_window takes windows with an alias: Over.order_by(...).alias('w').")
        return OverWindowedTable(self, over_windows)

    def order_by(self, *fields: Expression[Any]) -> Table:
        """The rows in an order; in a stream, it needs a time attribute or ``fetch``."""
        keys = [node if isinstance(node, exp.Ordered) else ordered_node(node) for node in nodes_of(fields, "order_by")]
        return self._in_order(_Sorted(self._plan, tuple(keys)))

    def offset(self, offset: int) -> Table:
        """The rows after so many, in the order of ``order_by``."""
        known = self._sorted or _Sorted(self._plan)
        if known.offset is not None or known.fetch is not None:
            raise ValidationError("OFFSET should be called before FETCH, and once.")
        return self._in_order(known._replace(offset=_count(offset, "offset")))

    def fetch(self, fetch: int) -> Table:
        """The first rows, in the order of ``order_by``."""
        known = self._sorted or _Sorted(self._plan)
        if known.fetch is not None:
            raise ValidationError("FETCH is already defined.")
        return self._in_order(known._replace(fetch=_count(fetch, "fetch")))

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """The first rows after so many."""
        return self.offset(offset).fetch(fetch)

    # -- two tables --------------------------------------------------------------------------------------------

    def join(self, right: Table, join_predicate: Expression[Any] | None = None) -> Table:
        """Pairs of rows of two tables, whose columns have different names."""
        return self._joined(right, "", join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression[Any] | None = None) -> Table:
        """Pairs of rows, and rows of this table that have none."""
        return self._joined(right, "LEFT", join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression[Any]) -> Table:
        """Pairs of rows, and rows of the other table that have none."""
        return self._joined(right, "RIGHT", join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression[Any]) -> Table:
        """Pairs of rows, and rows of both tables that have none."""
        return self._joined(right, "FULL", join_predicate)

    def minus(self, right: Table) -> Table:
        """Different rows that the other table does not have."""
        return self._combined(exp.Except, right, distinct=True)

    def minus_all(self, right: Table) -> Table:
        """Rows as many times as the other table has them less often."""
        return self._combined(exp.Except, right, distinct=False)

    def union(self, right: Table) -> Table:
        """Different rows of both tables."""
        return self._combined(exp.Union, right, distinct=True)

    def union_all(self, right: Table) -> Table:
        """The rows of both tables."""
        return self._combined(exp.Union, right, distinct=False)

    def intersect(self, right: Table) -> Table:
        """Different rows that both tables have."""
        return self._combined(exp.Intersect, right, distinct=True)

    def intersect_all(self, right: Table) -> Table:
        """Rows as many times as both tables have them."""
        return self._combined(exp.Intersect, right, distinct=False)

    # -- changelogs --------------------------------------------------------------------------------------------

    def to_changelog(self, *arguments: Expression[Any]) -> Table:
        """The changes as rows that are only added, with the operation in a column.

        Arguments are ``descriptor("name").as_argument("op")`` and ``map_(…).as_argument("op_mapping")``.
        """
        return self._changelog("TO_CHANGELOG", arguments)

    def from_changelog(self, *arguments: Expression[Any]) -> Table:
        """The changes that rows describe, whose operation is in a column; arguments are those of ``to_changelog``."""
        return self._changelog("FROM_CHANGELOG", arguments)

    # -- schema and results ------------------------------------------------------------------------------------

    def get_schema(self) -> TableSchema:
        """Names and types of the columns."""
        schema = self.get_resolved_schema()
        return TableSchema(schema.get_column_names(), schema.get_column_data_types())

    def get_resolved_schema(self) -> ResolvedSchema:
        """The columns."""
        return schema_of(self._plan)

    def print_schema(self) -> None:
        """Prints the columns as a tree."""
        print(self.get_resolved_schema())  # noqa: T201

    def execute(self) -> TableResult:
        """Runs the query; its rows come to the client."""
        return execute_query(self._session, self._plan)

    def execute_insert(self, table_path_or_descriptor: Any, overwrite: bool = False) -> TableResult:
        """Writes the rows to a table."""
        found = self._t_env._sink_table(table_path_or_descriptor)
        return execute_inserts(self._session, [sink_of(self._session, found, self._plan, overwrite=overwrite)])

    def insert_into(self, table_path_or_descriptor: Any, overwrite: bool = False) -> TablePipeline:
        """The rows on their way to a table; nothing is written before it is executed."""
        found = self._t_env._sink_table(table_path_or_descriptor)
        return TablePipeline(self._session, sink_of(self._session, found, self._plan, overwrite=overwrite))

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the query."""
        return explain_plans([self._plan], self._session, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan."""
        print(self.explain(*extra_details))  # noqa: T201

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame; for bounded queries."""
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]

        names = self.get_resolved_schema().get_column_names()
        with self.execute().collect() as rows:
            values = [list(row) for row in rows]
        return pd.DataFrame(values, columns=names)

    def to_dataframe(self) -> Any:
        """The rows as a Spark DataFrame, for queries over bounded tables; Spark computes it when it is used.

        In Flink there is no equivalent.
        """
        return dataframe_of(self._session, self._plan)

    def __str__(self) -> str:
        return self._plan.explain()

    def __getattr__(self, name: str) -> Expression[Any]:
        if name.startswith("_") or name not in self._columns():
            raise AttributeError(f"The current table has no column named '{name}', the columns are {self._columns()}.")
        return Expression(column_node(name))

    # -- for the other classes of this package -----------------------------------------------------------------

    def _columns(self) -> list[str]:
        return list(self._plan.row_type.field_names)

    def _require(self, column: str) -> None:
        if column not in self._columns():
            raise ValidationError(
                f"Cannot resolve field [{column}], input field list:[{', '.join(self._columns())}].",
            )

    def _of(self, query: exp.Expression) -> Table:
        return Table(self._session.bind(query, ""), self._session, self._t_env)

    def _all(self, **clauses: Any) -> exp.Select:
        relation = nodes.BoundRelation(this=self._plan)
        return exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation), **clauses)

    def _selected(
        self,
        items: list[exp.Expression],
        replaced: Callable[[exp.Expression], exp.Expression] | None = None,
        **clauses: Any,
    ) -> Table:
        """A SELECT of this table; ``replaced`` gives what stands in place of parts of the named items."""
        chosen = named(items, self._columns(), self._type_of)
        if replaced is not None:
            chosen = [item.transform(replaced) for item in chosen]
        select = self._all(**clauses)
        select.set("expressions", chosen)
        return self._of(select)

    def _type_of(self, node: exp.Expression) -> LogicalType:
        select = self._all()
        select.set("expressions", [_named(node.copy(), "value")])
        return self._session.bind(select, "").row_type.fields[0].type

    def _in_order(self, known: _Sorted) -> Table:
        clauses: dict[str, Any] = {}
        if known.keys:
            clauses["order"] = exp.Order(expressions=[key.copy() for key in known.keys])
        if known.fetch is not None:
            clauses["limit"] = exp.Limit(expression=exp.Literal.number(known.fetch))
        if known.offset:
            clauses["offset"] = exp.Offset(expression=exp.Literal.number(known.offset))
        relation = nodes.BoundRelation(this=known.plan)
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation), **clauses)
        return Table(self._session.bind(select, ""), self._session, self._t_env, known)

    def _joined(self, right: Table, side: str, predicate: Expression[Any] | None) -> Table:
        self._same_environment(right)
        for name in right._columns():
            if name in self._columns():
                raise ValidationError(
                    f"Ambiguous column name: {name}", hint="Rename the columns of one table with alias or select."
                )
        join = exp.Join(this=nodes.BoundRelation(this=right._plan))
        if side:
            join.set("side", side)
        if predicate is not None:
            (condition,) = nodes_of([predicate], "A join")
            join.set("on", condition)
        elif side:
            join.set("on", exp.Boolean(this=True))
        else:
            join.set("kind", "CROSS")
        return self._of(self._all(joins=[join]))

    def _changelog(self, function: str, arguments: tuple[Expression[Any], ...]) -> Table:
        relation = nodes.TableArgument(this=nodes.BoundRelation(this=self._plan))
        table = exp.Kwarg(this=exp.to_identifier("input"), expression=relation)
        call = nodes.Call(this=function, expressions=[table, *nodes_of(arguments, function.lower())])
        source = nodes.TableFunction(this=call)
        return self._of(exp.Select(expressions=[exp.Star()], from_=exp.From(this=source)))

    def _combined(self, kind: type[exp.SetOperation], right: Table, distinct: bool) -> Table:
        self._same_environment(right)
        relations = [nodes.BoundRelation(this=table._plan) for table in (self, right)]
        return self._of(kind(this=relations[0], expression=relations[1], distinct=distinct))

    def _same_environment(self, other: Table) -> None:
        if not isinstance(other, Table):
            raise TypeError(f"Expected a Table, not {other!r}.")
        if other._session is not self._session:
            raise ValidationError("Only tables from the same TableEnvironment can be joined or combined.")


def _as(column: str, name: str) -> exp.Expression:
    return _named(column_node(column), name)


def _named(node: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def _count(number: Any, method: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValidationError(f"{method} takes a number that is not negative, not {number!r}.")
    return number
