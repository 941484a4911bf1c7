"""Plans as Spark SQL: each node is a SELECT from those below it. ANSI mode has to be off, and the time zone UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.evaluation.spark_text import spark_text, spark_type
from firesteel.table.names import quoted
from firesteel.table.plan.correlates import Unnest
from firesteel.table.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalNode,
    Project,
    SetKind,
    SetOperation,
    Sort,
    TableScan,
    Values,
)
from firesteel.table.plan.over import Over
from firesteel.table.plan.rewriting import named_inputs
from firesteel.table.plan.streaming import NamedQuery, WatermarkAssigner
from firesteel.table.plan.subqueries import Exists, InSubquery, OuterRef, ScalarSubquery, Subquery
from firesteel.table.plan.windows import WindowTableFunction
from firesteel.table.spark_sql.aggregates import aggregate_text
from firesteel.table.spark_sql.user_functions import reason_against
from firesteel.table.spark_sql.window_functions import window_text
from firesteel.table.spark_sql.windows import order_text, over_text
from firesteel.types.logical import ArrayType, BooleanType, MapType

__all__ = ["SparkQueryPrinter", "UnsupportedInSparkError"]

_JOINS = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}
_SET_OPERATIONS = {SetKind.UNION: "UNION", SetKind.INTERSECT: "INTERSECT", SetKind.EXCEPT: "EXCEPT"}


class UnsupportedInSparkError(Exception):
    """A part of a plan that Spark cannot compute with Flink's results; the message names it."""


class SparkQueryPrinter:
    """Prints plans; ``view_of`` gives the name of a Spark view with the rows of a table, and ``call_of`` the text of
    a call of a function of the user, by those of its arguments."""

    def __init__(
        self,
        view_of: Callable[[TableScan], str],
        call_of: Callable[[Call, Sequence[str]], str | None] = lambda *_: None,
    ) -> None:
        self._view_of = view_of
        self._call_of = call_of
        self._relations = 0
        self._filters: list[Expression] = []
        self._around: list[_Row] = []  # the relations of the queries around a subquery

    def print(self, node: LogicalNode) -> str:
        """The query of a plan. Raises UnsupportedInSparkError."""
        match node:
            case TableScan():
                return f"SELECT {self._columns(node)} FROM {self._view_of(node)}"
            case WatermarkAssigner() | NamedQuery():
                # bounded queries have no watermarks, and no savepoints
                return self.print(node.input)
            case Values():
                return self._values(node)
            case Project():
                below, row = self._row(node.input)
                for part in node.expressions:
                    self._check_functions(part)
                named = zip([self._text(part, row) for part in node.expressions], node.names, strict=True)
                return f"SELECT {self._list(named) or '1'} FROM {below}"
            case Filter():
                self._check_functions(node.condition, is_filter=True)
                below, row = self._row(node.input)
                self._filters += _filters(named_inputs(node.condition, row.names))
                return f"SELECT * FROM {below} WHERE {self._text(node.condition, row)}"
            case Aggregate():
                return self._aggregate(node)
            case Join():
                return self._join(node)
            case SetOperation():
                operator = f" {_SET_OPERATIONS[node.kind]} {'ALL' if node.all else 'DISTINCT'} "
                return operator.join(f"({self.print(relation)})" for relation in node.relations)
            case Sort():
                return self._sort(node)
            case Over():
                return self._over(node)
            case Unnest():
                return self._unnest(node)
            case WindowTableFunction():
                text = window_text(node, self._below(node.input))
                if text is not None:
                    return text
        raise UnsupportedInSparkError(type(node).__name__)

    # -- nodes -------------------------------------------------------------------------------------------------

    def _values(self, node: Values) -> str:
        names = node.row_type.field_names
        if not names:
            return "SELECT 1"
        rows = [", ".join(self._all(row, node)) for row in node.rows]
        named = ", ".join(map(quoted, names))
        return f"SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS v ({named})"

    def _aggregate(self, node: Aggregate) -> str:
        fields, below = node.input.row_type.fields, self._below(node.input)
        keys = [quoted(fields[index].name) for index in node.grouping]
        texts = list(keys)
        for call in node.calls:
            arguments = [_constant(node.input, index) or quoted(fields[index].name) for index in call.arguments]
            condition = None if call.filter is None else quoted(fields[call.filter].name)
            text = aggregate_text(call, [fields[index].type for index in call.arguments], arguments, condition)
            if text is None:
                raise UnsupportedInSparkError(f"{call.function}")
            texts.append(text)
        names = node.row_type.field_names
        group = ""
        if node.grouping_sets is not None:
            sets = (", ".join(quoted(fields[index].name) for index in group) for group in node.grouping_sets)
            group = f" GROUP BY {', '.join(keys)} GROUPING SETS ({', '.join(f'({part})' for part in sets)})"
            texts.append("grouping_id()")
        elif keys:
            group = f" GROUP BY {', '.join(keys)}"
        return f"SELECT {self._list(zip(texts, names, strict=True))} FROM {below}{group}"

    def _join(self, node: Join) -> str:
        has_right = node.kind not in (JoinKind.SEMI, JoinKind.ANTI)
        left, right = len(node.left.row_type.fields), len(node.right.row_type.fields)
        names = list(node.row_type.field_names)
        if not has_right:
            names += [f"$right{index}" for index in range(right)]
        sides = [
            f"(SELECT {self._renamed(side, part)} FROM {self._below(side)})"
            for side, part in ((node.left, names[:left]), (node.right, names[left:]))
        ]
        condition = self._text(named_inputs(node.condition, names))
        return f"SELECT * FROM {sides[0]} AS l {_JOINS[node.kind]} {sides[1]} AS r ON {condition}"

    def _over(self, node: Over) -> str:
        texts = list(map(quoted, node.input.row_type.field_names))
        for group in node.groups:
            for call in group.calls:
                text = over_text(node, group, call)
                if text is None:
                    raise UnsupportedInSparkError(f"{call.function} over {group.frame}")
                texts.append(text)
        named = zip(texts, node.row_type.field_names, strict=True)
        return f"SELECT {self._list(named)} FROM {self._below(node.input)}"

    def _unnest(self, node: Unnest) -> str:
        type_ = node.collection.type
        is_map = isinstance(type_, MapType)
        if not is_map and (not isinstance(type_, ArrayType) or type_.element_type.children()):
            raise UnsupportedInSparkError(f"UNNEST of {type_.as_summary_string()}")
        if node.condition is not None:
            raise UnsupportedInSparkError("LEFT JOIN with UNNEST and a condition")
        collection = self._expression(node.collection, node.input)
        elements = ["$key", "$value"] if is_map else ["$value"]
        texts = [*map(quoted, node.input.row_type.field_names), *map(quoted, elements)]
        texts += ["CAST(`$place` + 1 AS INT)"] if node.with_ordinality else []
        columns = ", ".join(map(quoted, ["$place", *elements]))
        view = f"LATERAL VIEW {'OUTER ' if node.keeps_rows else ''}posexplode({collection}) AS {columns}"
        named = self._list(zip(texts, node.row_type.field_names, strict=True))
        return f"SELECT {named} FROM {self._below(node.input)} {view}"

    def _sort(self, node: Sort) -> str:
        text = f"SELECT * FROM {self._below(node.input)}"
        text += f" ORDER BY {order_text(node.keys, node.row_type.field_names)}" if node.keys else ""
        text += f" LIMIT {node.fetch}" if node.fetch is not None else ""
        return text + (f" OFFSET {node.offset}" if node.offset else "")

    # -- expressions -------------------------------------------------------------------------------------------

    def _below(self, node: LogicalNode) -> str:
        return f"({self.print(node)})"

    def _columns(self, node: LogicalNode) -> str:
        return ", ".join(map(quoted, node.row_type.field_names))

    def _renamed(self, node: LogicalNode, names: Sequence[str]) -> str:
        old = map(quoted, node.row_type.field_names)
        return self._list(zip(old, names, strict=True)) or "1"

    def _list(self, named: object) -> str:
        return ", ".join(f"{text} AS {quoted(name)}" for text, name in named)  # type: ignore[attr-defined]

    def _all(self, expressions: Sequence[Expression], node: LogicalNode) -> list[str]:
        return [self._expression(expression, node) for expression in expressions]

    def _expression(self, expression: Expression, node: LogicalNode) -> str:
        return self._text(named_inputs(expression, node.row_type.field_names))

    def _row(self, node: LogicalNode) -> tuple[str, _Row]:
        """A relation in FROM with a name, by which subqueries refer to its columns."""
        self._relations += 1
        row = _Row(f"q{self._relations}", tuple(node.row_type.field_names))
        return f"{self._below(node)} AS {row.alias}", row

    def _text(self, expression: Expression, row: _Row | None = None) -> str:
        if row is not None:
            expression = named_inputs(expression, row.names)
        text = spark_text(expression, lambda part: self._query_part(part, row))
        if text is None:
            raise UnsupportedInSparkError(str(expression))
        # the value of a function may have another precision in Spark
        is_plain = isinstance(expression, Literal) or isinstance(expression.type, BooleanType)
        name = None if is_plain else spark_type(expression.type)
        return text if name is None else f"CAST({text} AS {name})"

    def _check_functions(self, expression: Expression, *, is_filter: bool = False) -> None:
        reason = reason_against(expression, is_filter=is_filter)
        if reason is not None:
            raise UnsupportedInSparkError(reason)

    def _call(self, call: Call, row: _Row | None) -> str | None:
        """A call of a function of the user; its arguments have the types that the function expects."""
        if row is None or self._around:
            where = "VALUES, UNNEST or a join condition" if row is None else "a subquery"
            raise UnsupportedInSparkError(f"the function {call.function} is called in {where}")
        texts = [
            self._text(part, row) if not isinstance(part, Literal) and spark_type(part.type) else ""
            for part in call.arguments
        ]
        return self._call_of(call, texts)

    def _query_part(self, part: Expression, row: _Row | None) -> str | None:
        if isinstance(part, Call):
            return self._call(part, row)
        if isinstance(part, OuterRef):
            if part.depth > 1 or not self._around:
                return None  # Spark resolves names of the next query around only
            outer = self._around[-1]
            return f"{outer.alias}.{quoted(outer.names[part.index])}"
        if row is None or not isinstance(part, Subquery):
            return None
        self._around.append(row)
        query = self.print(part.query)
        self._around.pop()
        match part:
            case ScalarSubquery():
                return f"({query})"
            case Exists():
                return f"EXISTS ({query})"
            case InSubquery():
                if part.type.nullable and part not in self._filters:
                    return None  # Spark has false where Flink has NULL
                operands = ", ".join(self._text(operand, row) for operand in part.operands)
                return f"({operands}) IN ({query})"
        return None


def _filters(condition: Expression) -> list[Expression]:
    """The conditions IN and NOT IN that all rows have to meet; for these NULL is as good as false."""
    if isinstance(condition, Call) and condition.function == "AND":
        return [found for part in condition.arguments for found in _filters(part)]
    if isinstance(condition, Call) and condition.function == "NOT":
        condition = condition.arguments[0]
    return [condition] if isinstance(condition, InSubquery) else []


class _Row(NamedTuple):
    """A relation of a FROM clause: its name and the names of its columns."""

    alias: str
    names: tuple[str, ...]


def _constant(node: LogicalNode, index: int) -> str | None:
    """A column that is a literal: Spark's functions take some arguments only as such."""
    column = node.expressions[index] if isinstance(node, Project) else None
    return spark_text(column) if isinstance(column, Literal) else None
