"""CREATE VIEW: the query of a view, with full names of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.objects import CatalogBaseTable
from firesteel.table.parser import nodes
from firesteel.table.parser.tokens import tokenize
from firesteel.table.schema import Schema, UnresolvedPhysicalColumn
from firesteel.types.logical import RowType

__all__ = ["created_view", "qualified_query"]

Qualify = Callable[[Sequence[str]], ObjectIdentifier]


def created_view(
    query: exp.Expression,
    sql: str,
    row_type: RowType,
    qualify: Qualify,
    columns: Sequence[str] = (),
    comment: str | None = None,
) -> CatalogBaseTable:
    """A view of a query in a statement; ``columns`` are other names for those of the query."""
    if columns and len(columns) != len(row_type.fields):
        raise ValidationError(
            "VIEW definition and input fields not match:\n"
            f"\tDef fields: [{', '.join(columns)}].\n\tInput fields: [{', '.join(row_type.field_names)}]."
        )
    names = columns or row_type.field_names
    types = [part.type for part in row_type.fields]
    schema = Schema(tuple(UnresolvedPhysicalColumn(name, type_) for name, type_ in zip(names, types, strict=True)))
    text = nodes.text_of(query, sql)
    return CatalogBaseTable.create_view(text, qualified_query(query, sql, qualify), schema, comment=comment)


def qualified_query(query: exp.Expression, sql: str, qualify: Qualify) -> str:
    """The text of a query with full names of its tables, so that it means the same wherever it is used."""
    common = {table.alias for with_ in query.find_all(exp.With) for table in with_.expressions}
    tokens = list(tokenize(sql))
    starts = {token.offset: index for index, token in enumerate(tokens)}
    start, end = query.meta["span"]
    changes: list[tuple[int, int, str]] = []
    for table in query.find_all(exp.Table):
        path = [part.name for part in table.parts]
        if len(path) == 1 and path[0] in common:
            continue
        first = starts[nodes.offset_of(table)]
        last = tokens[first + 2 * (len(path) - 1)]
        changes.append((tokens[first].offset, last.end, qualify(path).as_serializable_string()))
    for begin, stop, name in sorted(changes, reverse=True):
        sql = sql[:begin] + name + sql[stop:]
        end += len(name) - (stop - begin)
    return sql[start:end]
