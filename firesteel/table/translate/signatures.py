"""Signatures of plan nodes: which operators may have the state of which."""

from __future__ import annotations

import hashlib

from firesteel.table.plan.nodes import LogicalNode

__all__ = ["signature_of"]


def signature_of(node: LogicalNode, *, is_named: bool = False) -> str:
    """A short text, equal for nodes that compute the same of columns with the same types.

    If ``is_named``, names, conditions and constants may be others: types and functions decide, as they do about the
    form of the state.
    """
    types = [[str(part.type) for part in one.row_type.fields] for one in (*node.inputs(), node)]
    calls = [(call.function, call.distinct, call.arguments) for call in getattr(node, "calls", ())]
    split = getattr(node, "split", None)
    text = repr((type(node).__name__, types, calls, None if is_named else node.describe(), *([split] if split else [])))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
