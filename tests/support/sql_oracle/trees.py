"""The tree of an expression in the form in which ``SqlParserOracle.java`` prints Calcite's."""

from __future__ import annotations

import re

from sqlglot import exp

from firesteel.table.parser.nodes import Call, MapConstructor, TypeName, Unknown, column_path

__all__ = ["normalize", "tree_text"]

NAMES: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Like: "LIKE",
    exp.SimilarTo: "SIMILAR TO",
    exp.RegexpLike: "RLIKE",
    exp.ILike: "ILIKE",
}
NEGATED = re.compile(r"\((?:NOT (LIKE|ILIKE|RLIKE|SIMILAR TO|IN|BETWEEN \w+)|IS NOT (?!DISTINCT)([A-Z ]+?)) ")


def tree_text(node: exp.Expression) -> str:
    """Returns the tree of an expression; a negated operator is NOT and the operator."""
    name = NAMES.get(type(node))
    if name is not None:
        return _call(name, node.this, node.expression)
    if isinstance(node, exp.Column | exp.Dot) and (path := column_path(node)) is not None:
        return ".".join(path)
    if isinstance(node, exp.Literal):
        return f"'{node.this}'" if node.is_string else str(node.this)
    if isinstance(node, exp.Boolean):
        return "TRUE" if node.this else "FALSE"
    if isinstance(node, exp.Null | Unknown):
        return "NULL" if isinstance(node, exp.Null) else "UNKNOWN"
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    if isinstance(node, exp.Not | exp.Neg):
        return _call("NOT" if isinstance(node, exp.Not) else "-", node.this)
    if isinstance(node, exp.Is):
        return _call(f"IS {node.expression.name or tree_text(node.expression)}", node.this)
    if isinstance(node, exp.Between):
        kind = "SYMMETRIC" if node.args.get("symmetric") else "ASYMMETRIC"
        return _call(f"BETWEEN {kind}", node.this, node.args["low"], node.args["high"])
    if isinstance(node, exp.In):
        return f"(IN {tree_text(node.this)} [{' '.join(map(tree_text, node.expressions))}])"
    if isinstance(node, exp.Bracket):
        return _call("ITEM", node.this, *node.expressions)
    if isinstance(node, exp.Escape):
        return f"{tree_text(node.this)[:-1]} {tree_text(node.expression)})"
    return _constructor(node)


def _constructor(node: exp.Expression) -> str:
    if isinstance(node, exp.Tuple | exp.Array | MapConstructor):
        name = {exp.Tuple: "ROW", exp.Array: "ARRAY"}.get(type(node), "MAP")
        return _call(name, *node.expressions)
    if isinstance(node, Call) and not node.args.get("quantifier"):
        return _call(".".join((*(node.args.get("path") or ()), str(node.this))), *node.expressions)
    if isinstance(node, exp.Cast):
        return _call("CAST" if type(node) is exp.Cast else "TRY_CAST", node.this, node.args["to"])
    if isinstance(node, exp.Case):
        whens = " ".join(_when(node.this, branch.this) for branch in node.args["ifs"])
        thens = " ".join(tree_text(branch.args["true"]) for branch in node.args["ifs"])
        default = "NULL" if node.args.get("default") is None else tree_text(node.args["default"])
        return f"(CASE - [{whens}] [{thens}] {default})"
    if isinstance(node, TypeName) and not node.this.elements and not node.this.fields and not node.this.unit:
        return {"INT": "INTEGER"}.get(str(node.this), str(node.this))
    raise NotImplementedError(type(node).__name__)


def _when(value: exp.Expression | None, condition: exp.Expression) -> str:
    if value is None:
        return tree_text(condition)
    if isinstance(condition, exp.Tuple):
        return f"(IN {tree_text(value)} [{' '.join(map(tree_text, condition.expressions))}])"
    return _call("=", value, condition)


def _call(name: str, *operands: exp.Expression) -> str:
    return f"({' '.join((name, *map(tree_text, operands)))})"


def normalize(tree: str) -> str:
    """Returns Calcite's tree with NOT and the operator for each negated operator."""
    while (found := NEGATED.search(tree)) is not None:
        name = found[1] or f"IS {found[2]}"
        end, level = found.start(), 0
        for end in range(found.start(), len(tree)):
            level += {"(": 1, ")": -1}.get(tree[end], 0)
            if level == 0:
                break
        inner = f"({name} {tree[found.end() : end + 1]}"
        tree = f"{tree[: found.start()]}(NOT {inner}){tree[end + 1 :]}"
    return tree
