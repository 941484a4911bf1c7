"""The columns that the expressions of a query can name: those of its tables, and those of the queries around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firesteel.table.binder.scope import Scope, ScopeColumn, field_of
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.plan.subqueries import OuterRef

__all__ = ["QueryScope"]


class QueryScope(Scope):
    """The columns of the tables of a query; names that they do not have are looked for in the query around it."""

    def __init__(
        self,
        columns: Iterable[ScopeColumn],
        outer: QueryScope | None = None,
        merged: Mapping[str, Expression] | None = None,
    ) -> None:
        super().__init__(columns)
        self.outer = outer
        self.merged = dict(merged or {})
        """What stands for both columns of a name in USING or NATURAL."""

    def beside(self, other: QueryScope) -> QueryScope:
        """The columns of two tables."""
        return QueryScope((*self.columns, *other.columns), self.outer)

    def resolve(self, path: Sequence[str]) -> Expression:
        if len(path) == 1 and path[0] in self.merged:
            return self.merged[path[0]]
        try:
            return super().resolve(path)
        except ValidationError:
            found = self._outer(path) if not self._knows(path) else None
            if found is None:
                raise
            return found

    def _knows(self, path: Sequence[str]) -> bool:
        return any(path[0] in (column.name, column.table) for column in self.columns)

    def _outer(self, path: Sequence[str]) -> Expression | None:
        depth, scope = 1, self.outer
        while scope is not None:
            if scope._knows(path):
                column, rest = scope._first(path)
                found: Expression = OuterRef(column.type, depth, column.index, column.name)
                for name in rest:
                    found = field_of(found, name)
                return found
            depth, scope = depth + 1, scope.outer
        return None

    def _first(self, path: Sequence[str]) -> tuple[InputRef, Sequence[str]]:
        """The column that a path begins with, and the fields after it."""
        is_column = any(column.name == path[0] for column in self.columns)
        for length in (2, 1):
            if len(path) >= length:
                try:
                    found = Scope.resolve(self, path[:length])
                except ValidationError:
                    if length == 1 or not is_column:
                        raise
                    continue
                if isinstance(found, InputRef):
                    return found, path[length:]
        raise AssertionError(path)
