"""Nodes of expression trees that sqlglot does not have, and how Flink's syntax maps to nodes.

| SQL | node |
|---|---|
| `a.b.c`, `t.*` | `exp.Column`; parts beyond the fourth are `exp.Dot` around it |
| `1`, `1.5`, `1E3`, `'x'`, `N'x'`, `U&'x'`, `_UTF8'x'` | `exp.Literal`, with the text of a number as written |
| `X'0F'`, `TRUE`, `NULL`, `UNKNOWN`, `?` | `exp.HexString`, `exp.Boolean`, `exp.Null`, `Unknown`, `exp.Placeholder` |
| `DATE '…'`, `TIMESTAMP '…'` | `TemporalLiteral` |
| `INTERVAL '1' DAY` | `exp.Interval` with an `IntervalQualifier` as unit; a sign is `exp.Neg` around it |
| `f(a, b)` and every function with a syntax of its own | `Call`; keywords among the arguments are `exp.Var` |
| `f(DISTINCT a)`, `f(*)` | `Call` with `quantifier`, `exp.Star` as argument |
| `CAST`, `TRY_CAST`, `CASE` | `exp.Cast`, `exp.TryCast` to a `TypeName`, `exp.Case` |
| `f(x) FILTER (WHERE …) OVER (…)` | `exp.Window` around `exp.Filter` around `Call` |
| `a IS NOT NULL`, `a NOT IN (…)`, `a NOT LIKE b` | `exp.Not` around `exp.Is`, `exp.In`, `exp.Like` |
| `a IS [NOT] DISTINCT FROM b` | `exp.NullSafeNEQ`, `exp.NullSafeEQ` |
| `ROW(a, b)`, `(a, b)` | `exp.Tuple` |
| `ARRAY[…]`, `MAP[…]`, `MULTISET[…]` | `exp.Array`, `MapConstructor`, `MultisetConstructor` |
| `a[i]`, `f(x).field` | `exp.Bracket`, `exp.Dot` |
| `FROM t FOR SYSTEM_TIME AS OF x AS r` | `exp.Table` with `hints`, `system_time` and `alias` |
| `FROM TABLE(f(…))`, `FROM f(…)`, `LATERAL TABLE(f(…))` | `TableFunction`, the last one in an `exp.Lateral` |
| `UNNEST(a) WITH ORDINALITY` | `exp.Unnest` with `offset` |
| `FROM a, b JOIN c ON …` | `from_` is `a`, `joins` are `exp.Join` in order; joins in parentheses are a `JoinTree` |
| `GROUP BY a, ROLLUP (b), ()` | `exp.Group` with all elements in `expressions`, `()` as an empty `exp.Tuple` |
| `LIMIT 1`, `FETCH FIRST 1 ROW ONLY` | `exp.Limit` |
| a query in parentheses | `exp.Subquery`; parentheses around other expressions leave no trace |

`node.meta["offset"]` is the place of a node in the text; see `offset_of`.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

__all__ = [
    "BoundRelation",
    "Call",
    "DefaultValue",
    "ExplicitTable",
    "HintCall",
    "IntervalQualifier",
    "JoinTree",
    "JsonBehavior",
    "MapConstructor",
    "MatchRecognize",
    "ModelArgument",
    "MultisetConstructor",
    "PatternText",
    "Plus",
    "SubqueryConstructor",
    "Subset",
    "TableArgument",
    "TableFunction",
    "TemporalLiteral",
    "TypeName",
    "Unknown",
    "WindowProperty",
    "column_path",
    "offset_of",
    "text_of",
]


class Call(exp.Anonymous):
    """A call of a function by its name, which the catalogue resolves.

    ``this`` is the last part of the name as written, ``path`` the parts before it. The clauses of JSON functions are
    ``returning``, ``wrapper``, ``on_empty``, ``on_error``, ``on_null`` and ``passing``. ``definition`` is that of a
    function of the user.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": False,
        "path": False,
        "quantifier": False,
        "niladic": False,
        "order": False,
        "separator": False,
        "null_treatment": False,
        "returning": False,
        "wrapper": False,
        "on_empty": False,
        "on_error": False,
        "on_null": False,
        "passing": False,
        "definition": False,
    }

    @property
    def function_name(self) -> str:
        """The name in capitals."""
        return str(self.args["this"]).upper()


class TypeName(exp.Expression):
    """The target of a cast; ``this`` is a ``SqlType``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Unknown(exp.Expression, exp.Condition):
    """The literal UNKNOWN: a BOOLEAN that is null."""

    arg_types: ClassVar[dict[str, bool]] = {}


class TemporalLiteral(exp.Expression, exp.Condition):
    """DATE, TIME, TIMESTAMP or TIMESTAMP WITH LOCAL TIME ZONE and a string, which the binder reads."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class IntervalQualifier(exp.Expression):
    """The fields of an interval: ``DAY(3) TO SECOND(6)``."""

    arg_types: ClassVar[dict[str, bool]] = {"start": True, "precision": False, "end": False, "fraction": False}


class DefaultValue(exp.Expression):
    """DEFAULT in a row of values or as an argument."""

    arg_types: ClassVar[dict[str, bool]] = {}


class MapConstructor(exp.Expression, exp.Condition):
    """MAP[key, value, …]."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


class MultisetConstructor(exp.Expression, exp.Condition):
    """MULTISET[element, …]."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class SubqueryConstructor(exp.Expression, exp.Condition):
    """ARRAY, MAP or MULTISET (``kind``) of the rows of a query; CURSOR and UNIQUE likewise."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class JsonBehavior(exp.Expression):
    """What JSON functions give when empty or on error: NULL, ERROR, EMPTY ARRAY, TRUE, …, or DEFAULT ``value``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": False}


class TableArgument(exp.Expression):
    """A table as an argument: TABLE t or a query, PARTITION BY and ORDER BY."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition_by": False, "order": False}


class ModelArgument(exp.Expression):
    """MODEL m as an argument; ``this`` is an ``exp.Table``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class TableFunction(exp.Expression):
    """A call of a table function in FROM; ``explicit`` if it is within TABLE(…)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False, "explicit": False}


class ExplicitTable(exp.Expression):
    """The query TABLE t."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "with_": False,
        "order": False,
        "limit": False,
        "offset": False,
    }


class BoundRelation(exp.Expression):
    """A relation that is bound already; ``this`` is a node of a plan. The Table API makes it, no text does."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Plus(exp.Expression, exp.Condition):
    """``a + b`` of the Table API, which joins strings too."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class WindowProperty(exp.Expression, exp.Condition):
    """START, END, ROWTIME or PROCTIME (``name``) of the window whose alias is ``this``, in the Table API."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "name": True}


class JoinTree(exp.Expression):
    """Joins in parentheses in FROM; ``joins`` are ``exp.Join``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "joins": True}


class MatchRecognize(exp.Expression):
    """MATCH_RECOGNIZE on a table of FROM.

    ``measures`` and ``define`` are ``exp.Alias``; ``after`` is an ``exp.Var`` or, for SKIP TO FIRST or LAST, an
    ``exp.Alias`` of the variable; ``pattern`` is a ``PatternText``.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "input_alias": False,
        "partition_by": False,
        "order": False,
        "measures": False,
        "rows": False,
        "after": False,
        "pattern": True,
        "within": False,
        "subsets": False,
        "define": True,
        "alias": False,
    }


class PatternText(exp.Expression):
    """The pattern of MATCH_RECOGNIZE; ``this`` is a node of ``firesteel.table.parser.pattern``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Subset(exp.Expression):
    """A union variable of MATCH_RECOGNIZE."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class HintCall(exp.Expression):
    """A hint: its name, and options, names or literals; see ``firesteel.table.parser.hints``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "options": False, "expressions": False}


def offset_of(node: exp.Expression) -> int:
    """The offset of the first character of a node in the text from which it was parsed."""
    places = (found.meta["offset"] for found in node.walk() if "offset" in found.meta)
    return min(places, default=0)


def text_of(node: exp.Expression, sql: str) -> str:
    """The text of an expression of a column or of the query of a view."""
    start, end = node.meta["span"]
    return sql[start:end]


def column_path(node: exp.Expression) -> tuple[str, ...] | None:
    """The parts of a name, ``None`` for other nodes; ``*`` is a part."""
    if isinstance(node, exp.Dot):
        path = column_path(node.this)
        is_name = path is not None and isinstance(node.expression, exp.Identifier)
        return (*path, node.expression.name) if path is not None and is_name else None
    if not isinstance(node, exp.Column):
        return None
    return tuple("*" if isinstance(part, exp.Star) else part.name for part in node.parts)
