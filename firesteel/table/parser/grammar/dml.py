"""INSERT, UPDATE, DELETE, TRUNCATE and statement sets."""

from __future__ import annotations

from typing import Literal, cast

from sqlglot import exp

from firesteel.table.parser.grammar.alter import AlterGrammar
from firesteel.table.parser.nodes import HintCall
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.statements.dml import Delete, Insert, StatementSet, TruncateTable, Update

__all__ = ["DmlGrammar"]


class DmlGrammar(AlterGrammar):
    """Statements that change tables."""

    def insert(self) -> Insert:
        """INSERT or UPSERT."""
        upsert = self.expect_any("INSERT", "UPSERT") == "UPSERT"
        token = self.token
        overwrite = self.expect_any("INTO", "OVERWRITE") == "OVERWRITE"
        if overwrite and upsert:
            raise self.error("OVERWRITE is allowed after INSERT only.", token)
        target = self.token.offset
        path = self.path()
        hints = self._table_hints()
        partition = self.partition_spec() if self.accept("PARTITION") else ()
        columns = self.column_paths() if self.kind == "(" and self.at_name(1) else ()
        query = self.query()
        conflict: Literal["ERROR", "NOTHING", "DEDUPLICATE"] | None = None
        if self.accept("ON"):
            self.expect("CONFLICT", "DO")
            behavior = self.expect_any("ERROR", "NOTHING", "DEDUPLICATE")
            conflict = cast("Literal['ERROR', 'NOTHING', 'DEDUPLICATE']", behavior)
        return Insert(path, query, columns, partition, hints, overwrite, upsert, conflict, target)

    def _table_hints(self) -> tuple[HintCall, ...]:
        return tuple(self.hints()) if self.kind == "/*+" else ()

    def _target_alias(self) -> str | None:
        if self.accept("AS"):
            return self.name().name
        return self.name().name if self.at_name() else None

    def _where(self) -> exp.Expression | None:
        return self.expression() if self.accept("WHERE") else None

    def update(self) -> Update:
        """UPDATE."""
        self.expect("UPDATE")
        path = self.path()
        hints = self._table_hints()
        alias = self._target_alias()
        self.expect("SET")
        assignments = self.comma_list(self._assignment)
        return Update(path, tuple(assignments), self._where(), alias, hints)

    def _assignment(self) -> tuple[str, exp.Expression]:
        name = self.name().name
        self.expect("=")
        return name, self.expression()

    def delete(self) -> Delete:
        """DELETE FROM."""
        self.expect("DELETE", "FROM")
        path = self.path()
        hints = self._table_hints()
        alias = self._target_alias()
        return Delete(path, self._where(), alias, hints)

    def truncate(self) -> Statement:
        """TRUNCATE TABLE."""
        self.expect("TRUNCATE", "TABLE")
        return TruncateTable(self.path())

    def statement_set(self) -> StatementSet:
        """STATEMENT SET BEGIN … END."""
        self.expect("STATEMENT", "SET", "BEGIN")
        statements: list[Insert] = []
        while not statements or self.kind != "END":
            if self.kind not in ("INSERT", "UPSERT"):
                self.unexpected("INSERT", "END")
            statements.append(self.insert())
            self.expect(";")
        self.expect("END")
        return StatementSet(tuple(statements))
