"""Calls of functions of the user: which definition a call has."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionKind
from firesteel.table.functions.registry import find_function
from firesteel.table.parser import nodes

__all__ = ["aggregate_name", "is_table_call", "mark_functions", "user_function"]


def user_function(node: nodes.Call, session: Session) -> Any:
    """The definition of a function of the user; None for a built-in one, or one that is not known."""
    known = node.args.get("definition")
    if known is not None or session.find_function is None:
        return known
    path = (*map(str, node.args.get("path") or ()), str(node.this))
    found = session.find_function(path)
    if found is not None:
        node.set("definition", found)
    return found


def aggregate_name(definition: Any) -> str:
    """The name of a function of the user in plans, which is that of no built-in function."""
    name: str = definition.name
    return name if find_function(name) is None else f"`{name}`"


def is_table_call(node: exp.Expression, kind: FunctionKind = FunctionKind.TABLE) -> bool:
    """Whether a table of FROM is the call of a table function of the user."""
    inner = node.this if isinstance(node, exp.Lateral) else node
    if not isinstance(inner, nodes.TableFunction):
        return False
    definition = inner.this.args.get("definition")
    return definition is not None and definition.kind is kind


def mark_functions(query: exp.Expression, session: Session) -> None:
    """Gives calls in a query the definitions of the functions of the user that they call."""
    for node in query.walk():
        if isinstance(node, nodes.Call):
            user_function(node, session)
