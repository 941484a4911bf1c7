"""Tables of compiled plans: what a plan keeps of them, and the sources and sinks that are made of it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.config import table_options
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.columns import MetadataColumn
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.objects import CatalogBaseTable
from firesteel.table.compiled.types import decode_type, encode_type
from firesteel.table.environment.planning.inserts import sink_with
from firesteel.table.environment.planning.scans import ScanBuilder
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.streams import is_anonymous
from firesteel.table.plan.nodes import TableScan
from firesteel.table.plan.streaming import Sink, SinkAbilities
from firesteel.table.plan.time_attributes import regular
from firesteel.table.schema import Schema
from firesteel.types.logical import LogicalType

__all__ = ["PlanTables"]


class PlanTables:
    """Writes and reads the tables of compiled plans, in a session."""

    def __init__(self, session: TableSession) -> None:
        self._session = session
        self._kept = session.configuration.get(table_options.PLAN_COMPILE_CATALOG_OBJECTS)
        self._restored = session.configuration.get(table_options.PLAN_RESTORE_CATALOG_OBJECTS)

    # -- writing -----------------------------------------------------------------------------------------------

    def encode(self, node: TableScan | Sink) -> dict[str, Any]:
        """The table of a node; of a temporary one the name alone, since it belongs to the session."""
        identifier = node.identifier
        found = None if identifier is None else self._session.find_table(identifier)
        if identifier is None or found is None:
            raise ValidationError(
                f"A compiled plan cannot contain {node.describe()}: its rows are those of the program.",
                hint="Read from and write to tables of connectors.",
            )
        if not is_anonymous(identifier):
            if self._kept == "IDENTIFIER" or found.is_temporary:
                return {"identifier": list(identifier.to_list())}
            return {"identifier": list(identifier.to_list()), **self._content(found.table)}
        if self._kept != "ALL":
            raise ValidationError(
                f"A table without a name cannot be part of a plan with table.plan.compile.catalog-objects {self._kept}."
            )
        return self._content(found.table)

    def _content(self, table: CatalogBaseTable) -> dict[str, Any]:
        content: dict[str, Any] = {"schema": self._schema(table)}
        if table.partition_keys:
            content["partitionKeys"] = list(table.partition_keys)
        if self._kept == "ALL":
            content["options"] = dict(table.options)
        return content

    def _schema(self, table: CatalogBaseTable) -> dict[str, Any]:
        """The columns that the connector reads and writes; others are nodes of the plan."""
        resolved = self._session.resolved_schema(table)
        columns = []
        for column in resolved.columns:
            entry: dict[str, Any] = {"name": column.name, "type": encode_type(column.data_type)}
            if isinstance(column, MetadataColumn):
                entry["metadata"] = column.metadata_key or column.name
                entry["virtual"] = column.is_virtual
            elif not column.is_physical():
                continue
            columns.append(entry)
        key = resolved.primary_key
        return {"columns": columns, **({"primaryKey": list(key.columns)} if key else {})}

    # -- reading -----------------------------------------------------------------------------------------------

    def decode(self, table: Mapping[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a scan or sink with its source or sink."""
        identifier: ObjectIdentifier = fields["identifier"]
        found = self._found(table, identifier)
        if "input" in fields:
            return {**fields, "sink": sink_with(self._session, found, fields.get("abilities", SinkAbilities()))}
        schema = self._session.resolved_schema(found.table)
        scans = ScanBuilder(self._session.configuration, self._session.is_streaming)
        source = scans.source(found, schema, {**found.table.options, **dict(fields.get("options", ()))})
        for change in fields.get("pushed", ()):
            source = change.apply(source)
        if source.produced_type != fields["type"]:
            raise ValidationError(
                f"The source of table '{identifier.as_summary_string()}' has rows of the type {source.produced_type}, "
                f"but the plan has {fields['type']}.",
                hint="Compile the plan again.",
            )
        return {**fields, "source": source}

    def _found(self, table: Mapping[str, Any], identifier: ObjectIdentifier) -> FoundTable:
        name = identifier.as_summary_string()
        is_named = "identifier" in table
        looked_up = None
        if is_named and self._restored != "ALL_ENFORCED":
            looked_up = self._session.find_table(identifier)
        if "schema" not in table or (self._restored == "IDENTIFIER" and is_named):
            if looked_up is None:
                raise ValidationError(
                    f"Cannot resolve table '{name}' and the persisted plan does not include all required catalog "
                    "metadata for it.",
                    hint="Create the table first: it is temporary, or the plan was compiled without tables."
                    if self._restored != "ALL_ENFORCED"
                    else "table.plan.restore.catalog-objects is ALL_ENFORCED, so no catalog is asked.",
                )
            return looked_up
        options = table.get("options")
        if options is None and looked_up is None:
            raise ValidationError(f"The plan has no options of the table '{name}', and no catalog has the table.")
        declared = Schema.new_builder()
        for column in table["schema"]["columns"]:
            type_ = decode_type(column["type"])
            if "metadata" in column:
                declared.column_by_metadata(column["name"], type_, column["metadata"], column["virtual"])
            else:
                declared.column(column["name"], type_)
        if "primaryKey" in table["schema"]:
            declared.primary_key(*table["schema"]["primaryKey"])
        if looked_up is not None:
            self._check(name, looked_up.table, table["schema"]["columns"])
        chosen = looked_up.table.options if options is None and looked_up is not None else options
        made = CatalogBaseTable.create_table(declared.build(), table.get("partitionKeys", ()), chosen or {})
        return FoundTable(identifier, made, False)

    def _check(self, name: str, table: CatalogBaseTable, columns: list[dict[str, Any]]) -> None:
        """The columns that the catalog has must be those of the plan."""
        resolved = self._session.resolved_schema(table)
        physical = [(column.name, regular(column.data_type)) for column in resolved.columns if column.is_physical()]
        of_plan: list[tuple[str, LogicalType]] = [
            (column["name"], regular(decode_type(column["type"]))) for column in columns if "metadata" not in column
        ]
        if physical != of_plan:
            raise ValidationError(
                f"The schema of table '{name}' from the persisted plan does not match the schema loaded from the "
                "catalog.",
                hint="Compile the plan again, or set table.plan.restore.catalog-objects to ALL_ENFORCED.",
            )
