"""ResolvedExpression: an expression of a schema whose types are known."""

from firesteel.table.bound.resolved import ResolvedExpression

__all__ = ["ResolvedExpression"]
