"""Expressions as text, in the words of the Table API."""

from __future__ import annotations

from sqlglot import exp

from firesteel.table.parser import nodes

__all__ = ["summary"]

_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "plus",
    nodes.Plus: "plus",
    exp.Sub: "minus",
    exp.Mul: "times",
    exp.Div: "divide",
    exp.EQ: "equals",
    exp.NEQ: "notEquals",
    exp.LT: "lessThan",
    exp.LTE: "lessThanOrEqual",
    exp.GT: "greaterThan",
    exp.GTE: "greaterThanOrEqual",
    exp.And: "and",
    exp.Or: "or",
    exp.Not: "not",
    exp.Neg: "minusPrefix",
    exp.Is: "is",
    exp.In: "in",
    exp.Between: "between",
    exp.Like: "like",
    exp.Dot: "get",
    exp.Bracket: "at",
    exp.Window: "over",
    exp.Tuple: "row",
    exp.Array: "array",
    nodes.MapConstructor: "map",
}


def summary(node: exp.Expression) -> str:
    """The text of an expression."""
    match node:
        case exp.Star():
            return "*"
        case exp.Column():
            return ".".join(nodes.column_path(node) or ())
        case exp.Identifier() | exp.Var():
            return str(node.name)
        case exp.Literal():
            return f"'{node.this}'" if node.is_string else str(node.this)
        case exp.Boolean():
            return str(bool(node.this)).lower()
        case exp.Null():
            return "null"
        case exp.Neg(this=exp.Literal(is_string=False)):
            return f"-{node.this.this}"
        case exp.Alias():
            return f"as({summary(node.this)}, '{node.alias}')"
        case exp.Ordered():
            return f"{'desc' if node.args.get('desc') else 'asc'}({summary(node.this)})"
        case exp.Interval():
            return f"INTERVAL {summary(node.this)} {node.args['unit'].args['start']}"
        case nodes.TemporalLiteral():
            return f"{node.args['kind']} {summary(node.this)}"
        case exp.Cast():
            name = "try_cast" if isinstance(node, exp.TryCast) else "cast"
            return f"{name}({summary(node.this)}, {node.args['to'].this})"
        case nodes.Call():
            distinct = "distinct " if node.args.get("quantifier") else ""
            return f"{node.this.lower()}({distinct}{_listed(node.expressions)})"
    name = _OPERATORS.get(type(node), type(node).__name__.lower())
    return f"{name}({_listed(node.iter_expressions())})"


def _listed(parts: object) -> str:
    return ", ".join(summary(part) for part in parts)  # type: ignore[attr-defined]
