"""Where an expression stands, which decides whether it may be, or contain, a query."""

from __future__ import annotations

from enum import Enum

__all__ = ["Context"]


class Context(Enum):
    """The place of an expression."""

    ALL = "ALL"
    """A query, also without parentheses, or a cursor, or anything else."""
    QUERY = "QUERY"
    """A query only."""
    QUERY_OR_JOIN = "QUERY_OR_JOIN"
    NON_QUERY = "NON_QUERY"
    """No query, not even in parentheses."""
    SUB_QUERY = "SUB_QUERY"
    """Queries in parentheses only."""
    NONCURSOR = "NONCURSOR"
    CURSOR = "CURSOR"

    def within_parentheses(self) -> Context:
        """The context of the first expression after an opening parenthesis."""
        if self is Context.SUB_QUERY:
            return Context.NONCURSOR
        return Context.ALL if self is Context.CURSOR else self

    @property
    def allows_bare_query(self) -> bool:
        """Whether a query without parentheses is allowed."""
        return self not in (Context.NON_QUERY, Context.SUB_QUERY, Context.CURSOR)
