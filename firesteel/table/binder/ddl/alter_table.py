"""ALTER TABLE: changes of the schema and the options of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sqlglot import exp

from firesteel.table.binder.ddl.columns import declared_column, declared_key, declared_watermark, with_not_null_key
from firesteel.table.binder.schemas import resolve_schema
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.catalog.objects import CatalogBaseTable, TableDistribution
from firesteel.table.names import quoted
from firesteel.table.parser import nodes, parse_expression
from firesteel.table.parser.statements import alter
from firesteel.table.schema import Schema, UnresolvedColumn, UnresolvedComputedColumn, UnresolvedPhysicalColumn

__all__ = ["altered_table"]

_FAILED = "Failed to execute ALTER TABLE statement."


def altered_table(table: CatalogBaseTable, change: alter.Alter, sql: str, session: Session) -> CatalogBaseTable:
    """The table after a change."""
    if isinstance(change, alter.SetOptions):
        return _with_options(table, {**table.options, **dict(change.options)})
    if isinstance(change, alter.ResetOptions):
        if not change.keys:
            raise ValidationError("ALTER TABLE RESET does not support empty key")
        if "connector" in change.keys:
            raise ValidationError("ALTER TABLE RESET does not support changing 'connector'")
        return _with_options(table, {key: value for key, value in table.options.items() if key not in change.keys})
    try:
        changed = _Changes(table, sql).applied(change)
        resolve_schema(changed.schema, session)
    except ValidationError as error:
        raise ValidationError(f"{_FAILED}\n{error.reason}", position=error.position, hint=error.hint) from error
    return changed


def _with_options(table: CatalogBaseTable, options: Mapping[str, str]) -> CatalogBaseTable:
    return replace(table, options=MappingProxyType(dict(options)))


class _Changes:
    def __init__(self, table: CatalogBaseTable, sql: str) -> None:
        self._table = table
        self._schema = table.schema
        self._sql = sql

    def applied(self, change: alter.Alter) -> CatalogBaseTable:
        schema = self._schema
        match change:
            case alter.AddOrModifySchema():
                return replace(self._table, schema=self._added_or_modified(change))
            case alter.RenameColumn():
                return self._renamed(_only(change.column), _only(change.new_column))
            case alter.DropColumns():
                return replace(self._table, schema=self._dropped([_only(path) for path in change.columns]))
            case alter.DropPrimaryKey():
                if schema.key is None:
                    raise ValidationError("The current table does not define any primary key.")
                return replace(self._table, schema=replace(schema, key=None))
            case alter.DropConstraint():
                if schema.key is None:
                    raise ValidationError("The current table does not define any primary key.")
                if schema.key.constraint_name != change.name:
                    raise ValidationError(
                        f"The current table does not define a primary key constraint named '{change.name}'. Available "
                        f"constraint name: ['{schema.key.constraint_name}']."
                    )
                return replace(self._table, schema=replace(schema, key=None))
            case alter.DropWatermark():
                if not schema.watermarks:
                    raise ValidationError("The current table does not define any watermark strategy.")
                return replace(self._table, schema=replace(schema, watermarks=()))
            case alter.ChangeDistribution():
                return self._distributed(change)
            case alter.DropDistribution():
                if self._table.distribution is None:
                    raise ValidationError("Table does not have a distribution to drop.")
                return replace(self._table, distribution=None)
        raise ValidationError(f"{type(change).__name__} is not supported yet.")

    def _added_or_modified(self, change: alter.AddOrModifySchema) -> Schema:
        adds = change.action == "ADD"
        columns = list(self._schema.columns)
        for item in change.columns:
            columns = self._with_column(columns, item, adds)
        schema = replace(self._schema, columns=tuple(columns))
        for constraint in change.constraints:
            key = declared_key(constraint)
            if adds and schema.key is not None:
                names = ", ".join(map(quoted, schema.key.column_names))
                raise ValidationError(
                    f"The current table has already defined the primary key constraint [{names}]. You might want to "
                    "drop it before adding a new one."
                )
            if not adds and schema.key is None:
                raise ValidationError(
                    "The current table does not define any primary key constraint. You might want to add a new one."
                )
            schema = with_not_null_key(replace(schema, key=key))
        if change.watermark is not None:
            if adds and schema.watermarks:
                existing = schema.watermarks[0]
                raise ValidationError(
                    f"The current table has already defined the watermark strategy "
                    f"{quoted(existing.column_name)} AS {existing.expression}. You might want to drop it before adding "
                    "a new one."
                )
            if not adds and not schema.watermarks:
                raise ValidationError(
                    "The current table does not define any watermark strategy. You might want to add a new one."
                )
            schema = replace(schema, watermarks=(declared_watermark(change.watermark, self._sql),))
        return schema

    def _with_column(
        self, columns: list[UnresolvedColumn], item: alter.ChangedColumn, adds: bool
    ) -> list[UnresolvedColumn]:
        column = declared_column(item.column, self._sql)
        names = [each.name for each in columns]
        if adds and column.name in names:
            raise ValidationError(f"Column {quoted(column.name)} already exists in the table.")
        place = len(columns)
        if not adds:
            if column.name not in names:
                raise ValidationError(f"Column {quoted(column.name)} does not exist in the table.")
            place = names.index(column.name)
            old = columns[place]
            if isinstance(column, UnresolvedPhysicalColumn) and isinstance(old, UnresolvedPhysicalColumn):
                column = replace(column, comment=column.comment or old.comment)
            columns = [each for each in columns if each.name != column.name]
        if item.first:
            place = 0
        elif item.after is not None:
            after = _only(item.after)
            remaining = [each.name for each in columns]
            if after not in remaining:
                raise ValidationError(f"Referenced column {quoted(after)} by 'AFTER' does not exist in the table.")
            place = remaining.index(after) + 1
        return [*columns[:place], column, *columns[place:]]

    # -- columns that are removed or renamed ---------------------------------------------------------------------

    def _renamed(self, old: str, new: str) -> CatalogBaseTable:
        names = [column.name for column in self._schema.columns]
        if old not in names:
            raise ValidationError(f"The column {quoted(old)} does not exist in the base table.")
        if new in names:
            raise ValidationError(f"The column {quoted(new)} already existed in table schema.")
        self._check_references(old, {old})
        columns = tuple(replace(column, name=new) if column.name == old else column for column in self._schema.columns)
        schema = replace(self._schema, columns=columns)
        if schema.key is not None:
            key = tuple(new if name == old else name for name in schema.key.column_names)
            schema = replace(schema, key=replace(schema.key, column_names=key))
        keys = tuple(new if name == old else name for name in self._table.partition_keys)
        return replace(self._table, schema=schema, partition_keys=keys)

    def _dropped(self, dropped: Sequence[str]) -> Schema:
        names = [column.name for column in self._schema.columns]
        for name in dropped:
            if name not in names:
                raise ValidationError(f"The column {quoted(name)} does not exist in the base table.")
            if list(dropped).count(name) > 1:
                raise ValidationError(f"Duplicate column {quoted(name)}.")
            self._check_references(name, set(dropped))
            if self._schema.key is not None and name in self._schema.key.column_names:
                raise ValidationError(f"The column {quoted(name)} is used as the primary key.")
            if name in self._table.partition_keys:
                raise ValidationError(f"The column {quoted(name)} is used as the partition keys.")
        return replace(
            self._schema, columns=tuple(column for column in self._schema.columns if column.name not in dropped)
        )

    def _check_references(self, name: str, leaving: set[str]) -> None:
        referring = [
            quoted(column.name)
            for column in self._schema.columns
            if isinstance(column, UnresolvedComputedColumn)
            and column.name not in leaving
            and name in _names_in(column.expression)
        ]
        if referring:
            raise ValidationError(f"The column {quoted(name)} is referenced by computed column {', '.join(referring)}.")
        for watermark in self._schema.watermarks:
            if name == watermark.column_name or name in _names_in(watermark.expression):
                raise ValidationError(f"The column {quoted(name)} is referenced by watermark expression.")

    def _distributed(self, change: alter.ChangeDistribution) -> CatalogBaseTable:
        has = self._table.distribution is not None
        if change.action == "ADD" and has:
            raise ValidationError(
                "The current table has already defined the distribution. You might want to drop it before adding a new "
                "one."
            )
        if change.action == "MODIFY" and not has:
            raise ValidationError(
                "The current table does not define any distribution. You might want to add a new one."
            )
        new = change.distribution
        distribution = TableDistribution(new.kind or "UNKNOWN", new.buckets, new.columns)
        return replace(self._table, distribution=distribution)


def _only(path: Sequence[str]) -> str:
    if len(path) > 1:
        raise ValidationError(f"Alter nested row type {'.'.join(map(quoted, path))} is not supported yet.")
    return path[0]


def _names_in(expression: object) -> Iterator[str]:
    node: exp.Expression = getattr(expression, "node", None) or parse_expression(str(expression))
    for column in node.find_all(exp.Column):
        path = nodes.column_path(column)
        if path is not None:
            yield path[0]
