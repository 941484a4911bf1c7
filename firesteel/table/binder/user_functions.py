"""Calls of functions of the user: which definition a call has."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from firesteel.table.bound.session import Session
from firesteel.table.parser import nodes

__all__ = ["mark_functions", "user_function"]


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


def mark_functions(query: exp.Expression, session: Session) -> None:
    """Gives calls in a query the definitions of the functions of the user that they call."""
    for node in query.walk():
        if isinstance(node, nodes.Call):
            user_function(node, session)
