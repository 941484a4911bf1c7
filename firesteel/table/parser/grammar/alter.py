"""ALTER and DROP."""

from __future__ import annotations

from typing import Literal, cast

from firesteel.table.parser.grammar.create import LANGUAGES, CreateGrammar
from firesteel.table.parser.statements import alter
from firesteel.table.parser.statements.alter import Alter, AlterObject, ChangedColumn
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.statements.dml import PartitionSpec
from firesteel.table.parser.statements.objects import Drop, DropDatabase
from firesteel.table.parser.statements.tables import TableConstraint, Watermark

__all__ = ["AlterGrammar"]

OBJECTS = ("CATALOG", "DATABASE", "TABLE", "VIEW", "MATERIALIZED", "FUNCTION", "MODEL", "CONNECTION")


class AlterGrammar(CreateGrammar):
    """ALTER and DROP."""

    def alter(self) -> Statement:
        """ALTER of any object."""
        self.expect("ALTER")
        if self.kind == "TEMPORARY" or self.kind == "FUNCTION":
            return self._alter_function()
        kind = self.expect_any(*OBJECTS)
        if kind == "CATALOG":
            return AlterObject("CATALOG", (self.name().name,), self._catalog_change())
        if kind == "DATABASE":
            path = self.path()
            self.expect("SET")
            return AlterObject("DATABASE", path, alter.SetOptions(self.properties()))
        if kind == "VIEW":
            return AlterObject("VIEW", self.path(), self._view_change())
        if kind == "MATERIALIZED":
            self.expect("TABLE")
            return AlterObject("MATERIALIZED TABLE", self.path(), self._materialized_table_change())
        if_exists = self.if_exists()
        path = self.path()
        if kind == "TABLE":
            return AlterObject("TABLE", path, self._table_change(), if_exists)
        return AlterObject(cast("Literal['MODEL']", kind), path, self._model_change(), if_exists)

    def _catalog_change(self) -> Alter:
        word = self.expect_any("SET", "RESET", "COMMENT")
        if word == "SET":
            return alter.SetOptions(self.properties())
        if word == "RESET":
            return alter.ResetOptions(self.property_keys())
        return alter.AlterCatalogComment(self.quoted_text())

    def _view_change(self) -> Alter:
        if self.expect_any("RENAME", "AS") == "AS":
            return alter.AlterQuery(self.spanned(self.query))
        self.expect("TO")
        return alter.Rename(self.path())

    def _model_change(self) -> Alter:
        word = self.expect_any("RENAME", "SET", "RESET")
        if word == "SET":
            return alter.SetOptions(self.properties())
        if word == "RESET":
            return alter.ResetOptions(self.property_keys())
        self.expect("TO")
        return alter.Rename(self.path())

    def _alter_function(self) -> Statement:
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        self.expect("FUNCTION")
        if_exists = self.if_exists()
        path = self.path()
        self.expect("AS")
        class_name = self.quoted_text()
        language = self.expect_any(*LANGUAGES) if self.accept("LANGUAGE") else None
        return AlterObject("FUNCTION", path, alter.AlterFunction(class_name, language, temporary, system), if_exists)

    # tables

    def _table_change(self) -> Alter:
        word = self.expect_any("RENAME", "RESET", "SET", "ADD", "MODIFY", "DROP")
        if word == "RENAME":
            if self.accept("TO"):
                return alter.Rename(self.path())
            column = self.path()
            self.expect("TO")
            return alter.RenameColumn(column, self.path())
        if word == "RESET":
            return alter.ResetOptions(self.property_keys())
        if word == "SET":
            return alter.SetOptions(self.properties())
        if word == "ADD" and (self.kind == "PARTITION" or self.at("IF", "NOT")):
            return self._add_partitions()
        if word == "DROP" and (self.kind == "PARTITION" or self.at("IF", "EXISTS")):
            return self._drop_partitions()
        return self._schema_change(word)

    def _schema_change(self, word: str) -> Alter:
        if word == "DROP":
            return self._drop_from_schema()
        action = cast("Literal['ADD', 'MODIFY']", word)
        if self.accept("DISTRIBUTION"):
            return alter.ChangeDistribution(action, self.distribution())
        if not self.accept("("):
            return self._changed_schema(action, several=False)
        change = self._changed_schema(action, several=True)
        self.expect(")")
        return change

    def _changed_schema(self, action: Literal["ADD", "MODIFY"], several: bool) -> Alter:
        columns: list[ChangedColumn] = []
        constraints: list[TableConstraint] = []
        watermark: Watermark | None = None
        while True:
            if self.kind == "WATERMARK":
                if watermark is not None:
                    raise self.error("A table has at most one watermark.")
                watermark = self.watermark()
            elif self.kind in ("CONSTRAINT", "PRIMARY", "UNIQUE"):
                constraints.append(self.table_constraint())
            else:
                columns.append(self._changed_column())
            if not several or not self.accept(","):
                return alter.AddOrModifySchema(action, tuple(columns), tuple(constraints), watermark)

    def _changed_column(self) -> ChangedColumn:
        column = self.column_definition()
        if self.accept("FIRST"):
            return ChangedColumn(column, first=True)
        return ChangedColumn(column, after=self.path() if self.accept("AFTER") else None)

    def _drop_from_schema(self) -> Alter:
        if self.accept("PRIMARY"):
            self.expect("KEY")
            return alter.DropPrimaryKey()
        if self.accept("CONSTRAINT"):
            return alter.DropConstraint(self.name().name)
        if self.accept("DISTRIBUTION"):
            return alter.DropDistribution()
        if self.accept("WATERMARK"):
            return alter.DropWatermark()
        return alter.DropColumns(self.column_paths() if self.kind == "(" else (self.path(),))

    def _add_partitions(self) -> Alter:
        if_not_exists = self.if_not_exists()
        partitions: list[alter.NewPartition] = []
        while not partitions or self.kind == "PARTITION":
            self.expect("PARTITION")
            partition = self.partition_spec()
            partitions.append(alter.NewPartition(partition, self.with_properties()))
        return alter.AddPartitions(tuple(partitions), if_not_exists)

    def _drop_partitions(self) -> Alter:
        if_exists = self.if_exists()
        partitions = self.comma_list(self._dropped_partition)
        return alter.DropPartitions(tuple(partitions), if_exists)

    def _dropped_partition(self) -> PartitionSpec:
        self.expect("PARTITION")
        return self.partition_spec()

    def _materialized_table_change(self) -> Alter:
        word = self.expect_any("SUSPEND", "RESUME", "REFRESH", "SET", "RESET", "AS", "ADD", "MODIFY", "DROP")
        if word == "SUSPEND":
            return alter.Suspend()
        if word == "RESUME":
            return alter.Resume(self.with_properties())
        if word == "REFRESH":
            return alter.Refresh(self.partition_spec() if self.accept("PARTITION") else ())
        if word == "RESET":
            return alter.ResetOptions(self.property_keys())
        if word == "AS":
            return alter.AlterQuery(self.spanned(self.query))
        if word != "SET":
            return self._schema_change(word)
        if self.kind == "FRESHNESS":
            return alter.AlterFreshness(self.freshness())
        if self.kind == "REFRESH_MODE":
            return alter.AlterRefreshMode(self.refresh_mode())
        return alter.SetOptions(self.properties())

    # DROP

    def drop(self) -> Statement:
        """DROP of any object."""
        self.expect("DROP")
        temporary = self.accept("TEMPORARY")
        system = False
        if self.kind == "SYSTEM":
            if self.ahead(1) == "CONNECTION" and not temporary:
                raise self.error("A system connection has to be temporary.")
            system = self.accept("SYSTEM")
            kind = self.expect_any("FUNCTION", "CONNECTION")
        else:
            kind = self.expect_any(*OBJECTS)
        if kind == "MATERIALIZED":
            if temporary:
                raise self.error("A materialized table cannot be temporary.")
            self.expect("TABLE")
            kind = "MATERIALIZED TABLE"
        if_exists = self.if_exists()
        path = self.path()
        if kind == "DATABASE":
            return DropDatabase(path, if_exists, self.accept_any("RESTRICT", "CASCADE") == "CASCADE")
        return Drop(cast("Literal['TABLE']", kind), path, temporary, system, if_exists)
