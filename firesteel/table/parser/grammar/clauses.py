"""Clauses that several statements have: IF EXISTS, COMMENT, WITH, columns, constraints, partitions."""

from __future__ import annotations

from typing import Literal, cast

from sqlglot import exp

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.queries import QueryGrammar
from firesteel.table.parser.statements.base import ObjectPath, Options
from firesteel.table.parser.statements.dml import PartitionSpec
from firesteel.table.parser.statements.tables import (
    Column,
    ComputedColumn,
    Distribution,
    MetadataColumn,
    PhysicalColumn,
    TableConstraint,
    TableSchema,
    Watermark,
)

__all__ = ["ClauseGrammar"]


class ClauseGrammar(QueryGrammar):
    """Clauses of statements."""

    def if_not_exists(self) -> bool:
        """IF NOT EXISTS."""
        return self.accept("IF", "NOT", "EXISTS")

    def if_exists(self) -> bool:
        """IF EXISTS."""
        return self.accept("IF", "EXISTS")

    def comment(self) -> str | None:
        """COMMENT and a string."""
        return self.quoted_text() if self.accept("COMMENT") else None

    def properties(self) -> Options:
        """Options in parentheses."""
        self.expect("(")
        options = [] if self.kind == ")" else self.comma_list(self._property)
        self.expect(")")
        return tuple(options)

    def _property(self) -> tuple[str, str]:
        key = self.string_value()
        self.expect("=")
        return key, self.string_value()

    def with_properties(self) -> Options:
        """WITH and options."""
        return self.properties() if self.accept("WITH") else ()

    def property_keys(self) -> tuple[str, ...]:
        """Keys in parentheses."""
        self.expect("(")
        keys = [] if self.kind == ")" else self.comma_list(self.string_value)
        self.expect(")")
        return tuple(keys)

    def name_list(self) -> tuple[str, ...]:
        """Names in parentheses."""
        return tuple(name.name for name in self.in_parentheses(self.name))

    def column_paths(self) -> tuple[ObjectPath, ...]:
        """Names of one or more parts, in parentheses."""
        return tuple(self.in_parentheses(self.path))

    # partitions

    def partition_spec(self) -> PartitionSpec:
        """``(a = 1, b = 'x')``."""
        return tuple(self.in_parentheses(self._partition_value))

    def _partition_value(self) -> tuple[str, exp.Expression | None]:
        name = self.name().name
        self.expect("=")
        return name, self.literal()

    def partition_spec_with_open_keys(self) -> PartitionSpec:
        """``(a = 1, b)``."""
        return tuple(self.in_parentheses(self._partition_value_or_key))

    def _partition_value_or_key(self) -> tuple[str, exp.Expression | None]:
        name = self.name().name
        return name, self.literal() if self.accept("=") else None

    # columns

    def table_schema(self) -> TableSchema:
        """Columns, constraints and the watermark in parentheses, or names only."""
        self.expect("(")
        schema = self._names_only() if self._at_name_only() else self._schema_items()
        self.expect(")")
        return schema

    def _at_name_only(self) -> bool:
        distance = 0
        while self.at_name(distance) and self.ahead(distance + 1) == ".":
            distance += 2
        return self.at_name(distance) and self.ahead(distance + 1) in (",", ")")

    def _names_only(self) -> TableSchema:
        return TableSchema(column_names=tuple(self.comma_list(self.path)))

    def _schema_items(self) -> TableSchema:
        columns: list[Column] = []
        constraints: list[TableConstraint] = []
        watermark: Watermark | None = None
        while True:
            token = self.token
            if self.kind == "WATERMARK":
                if watermark is not None:
                    raise self.error("A table has at most one watermark.", token)
                watermark = self.watermark()
            elif self.kind in ("CONSTRAINT", "PRIMARY", "UNIQUE"):
                constraints.append(self.table_constraint())
            else:
                columns.append(self.column_definition())
            if not self.accept(","):
                return TableSchema(tuple(columns), tuple(constraints), watermark)

    def watermark(self) -> Watermark:
        """WATERMARK FOR."""
        self.expect("WATERMARK", "FOR")
        column = self.path()
        self.expect("AS")
        return Watermark(column, self.spanned(lambda: self.expression(Context.NON_QUERY)))

    def table_constraint(self) -> TableConstraint:
        """A constraint with its columns."""
        name = self._constraint_name()
        kind = self._constraint_kind()
        return TableConstraint(kind, self.name_list(), name, self._enforcement())

    def _constraint_name(self) -> str | None:
        return self.name().name if self.accept("CONSTRAINT") else None

    def _constraint_kind(self) -> Literal["PRIMARY KEY", "UNIQUE"]:
        if self.accept("UNIQUE"):
            return "UNIQUE"
        if self.kind != "PRIMARY":
            self.unexpected("PRIMARY", "UNIQUE")
        self.expect("PRIMARY", "KEY")
        return "PRIMARY KEY"

    def _enforcement(self) -> bool | None:
        if self.accept("ENFORCED"):
            return True
        if self.kind != "NOT":
            return None
        self.expect("NOT", "ENFORCED")
        return False

    def column_definition(self) -> Column:
        """A physical, metadata or computed column."""
        if not self.at_name():
            self.unexpected("name", "PRIMARY", "UNIQUE", "CONSTRAINT", "WATERMARK")
        if self.ahead(1) == "AS":
            name = self.name().name
            self.expect("AS")
            expression = self.spanned(lambda: self.expression(Context.NON_QUERY))
            return ComputedColumn((name,), expression, self.comment())
        path, type_ = self.path(), self.column_type()
        if self.accept("METADATA"):
            key = self.string_value() if self.accept("FROM") else None
            return MetadataColumn(path, type_, key, self.accept("VIRTUAL"), self.comment())
        constraint = None
        if self.kind in ("CONSTRAINT", "PRIMARY", "UNIQUE"):
            name_ = self._constraint_name()
            constraint = TableConstraint(self._constraint_kind(), (".".join(path),), name_, self._enforcement())
        return PhysicalColumn(path, type_, constraint, self.comment())

    def distribution(self) -> Distribution:
        """What follows DISTRIBUTED, or ADD DISTRIBUTION."""
        if self.kind == "INTO":
            return Distribution(buckets=self._buckets())
        self.expect("BY")
        kind = cast("Literal['HASH', 'RANGE'] | None", self.accept_any("HASH", "RANGE"))
        columns = self.name_list()
        return Distribution(kind, columns, self._buckets() if self.kind == "INTO" else None)

    def _buckets(self) -> int:
        self.expect("INTO")
        if self.kind != kinds.INTEGER:
            raise self.error("The number of buckets is a positive integer.")
        buckets = int(self.advance().text)
        self.expect("BUCKETS")
        return buckets
