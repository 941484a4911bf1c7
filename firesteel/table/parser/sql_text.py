"""Expressions as SQL text, in the form in which Flink shows those of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from firesteel.table.names import quoted, string_literal
from firesteel.table.parser import nodes

__all__ = ["sql_text"]

_BINARY: dict[type[exp.Expression], tuple[str, int]] = {
    exp.Or: ("OR", 1),
    exp.And: ("AND", 2),
    exp.EQ: ("=", 4),
    exp.NEQ: ("<>", 4),
    exp.LT: ("<", 4),
    exp.LTE: ("<=", 4),
    exp.GT: (">", 4),
    exp.GTE: (">=", 4),
    exp.Like: ("LIKE", 4),
    exp.DPipe: ("||", 6),
    exp.Add: ("+", 5),
    exp.Sub: ("-", 5),
    exp.Mul: ("*", 6),
    exp.Div: ("/", 6),
    exp.Mod: ("%", 6),
}
"""The operator, and how strongly it binds."""
_PRIMARY = 9


def sql_text(node: exp.Expression) -> str | None:
    """The text of an expression; None for one that is not written here.

    >>> from firesteel.table.parser import parse_expression
    >>> print(sql_text(parse_expression("(a+1)*2")))
    (`a` + 1) * 2
    """
    try:
        return _text(node, 0)
    except KeyError:
        return None


def _text(node: exp.Expression, around: int) -> str:
    kind = type(node)
    if kind in _BINARY:
        word, strength = _BINARY[kind]
        text = f"{_text(node.this, strength)} {word} {_text(node.expression, strength + 1)}"
        return f"({text})" if strength < around else text
    return _OTHERS[kind](node)


def _column(node: exp.Column) -> str:
    path = nodes.column_path(node)
    assert path is not None
    return ".".join("*" if part == "*" else quoted(part) for part in path)


def _call(node: nodes.Call) -> str:
    if any(node.args.get(name) for name in node.arg_types if name not in ("this", "expressions", "path", "niladic")):
        raise KeyError(node)
    name = "".join(f"{quoted(part)}." for part in node.args.get("path") or ())
    is_simple = all(not isinstance(argument, exp.Var) for argument in node.expressions)
    if not is_simple:
        raise KeyError(node)
    called = f"{name}{node.function_name}" if not name else f"{name}{quoted(str(node.this))}"
    if node.args.get("niladic"):
        return called
    return f"{called}({', '.join(_text(argument, 0) for argument in node.expressions)})"


def _interval(node: exp.Interval) -> str:
    unit = node.args["unit"]
    if unit.args.get("precision") or unit.args.get("fraction"):
        raise KeyError(node)
    fields = unit.args["start"] if not unit.args.get("end") else f"{unit.args['start']} TO {unit.args['end']}"
    return f"INTERVAL {string_literal(node.this.this)} {fields}"


def _case(node: exp.Case) -> str:
    value = f" {_text(node.this, 0)}" if node.args.get("this") is not None else ""
    branches = "".join(f" WHEN {_text(part.this, 0)} THEN {_text(part.args['true'], 0)}" for part in node.args["ifs"])
    default = node.args.get("default")
    return f"CASE{value}{branches} ELSE {'NULL' if default is None else _text(default, 0)} END"


def _not(node: exp.Not) -> str:
    operand = node.this
    if isinstance(operand, exp.Is):
        return f"{_text(operand.this, 4)} IS NOT {_text(operand.expression, _PRIMARY)}"
    return f"NOT {_text(operand, 3)}"


def _in(node: exp.In) -> str:
    if node.args.get("query") is not None:
        raise KeyError(node)
    return f"{_text(node.this, 4)} IN ({', '.join(_text(value, 0) for value in node.expressions)})"


_OTHERS: dict[type[exp.Expression], Callable[[Any], str]] = {
    exp.Column: _column,
    exp.Literal: lambda node: string_literal(node.this) if node.is_string else str(node.this),
    exp.Boolean: lambda node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda _: "NULL",
    exp.Neg: lambda node: f"- {_text(node.this, _PRIMARY)}",
    exp.Not: _not,
    exp.Is: lambda node: f"{_text(node.this, 4)} IS {_text(node.expression, _PRIMARY)}",
    exp.In: _in,
    exp.Case: _case,
    exp.Cast: lambda node: f"CAST({_text(node.this, 0)} AS {node.args['to'].this})",
    exp.TryCast: lambda node: f"TRY_CAST({_text(node.this, 0)} AS {node.args['to'].this})",
    exp.Interval: _interval,
    exp.Bracket: lambda node: f"{_text(node.this, _PRIMARY)}[{_text(node.expressions[0], 0)}]",
    nodes.Call: _call,
    nodes.TemporalLiteral: lambda node: f"{node.args['kind']} {string_literal(str(node.this))}",
}
