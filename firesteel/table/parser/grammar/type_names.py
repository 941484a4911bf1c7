"""Types as written: ``ROW<a INT NOT NULL, b ARRAY<STRING>>``."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.cursor import unquote
from firesteel.table.parser.grammar.literals import LiteralGrammar
from firesteel.table.parser.nodes import IntervalQualifier
from firesteel.table.parser.types import SqlField, SqlType

__all__ = ["TypeGrammar"]

SIMPLE = {
    "STRING": "STRING",
    "BYTES": "BYTES",
    "BOOLEAN": "BOOLEAN",
    "INTEGER": "INT",
    "INT": "INT",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "BIGINT": "BIGINT",
    "REAL": "FLOAT",
    "FLOAT": "FLOAT",
    "VARIANT": "VARIANT",
    "BITMAP": "BITMAP",
    "DATE": "DATE",
}
NUMERIC = {"DECIMAL": "DECIMAL", "DEC": "DECIMAL", "NUMERIC": "DECIMAL", "ANY": "ANY"}


class TypeGrammar(LiteralGrammar):
    """Types."""

    def cast_type(self) -> SqlType:
        """The type of a cast: no nullability at the outside."""
        if self.kind == "INTERVAL":
            token = self.advance()
            return interval_type(self.interval_qualifier(), token.offset)
        type_ = self._type_name()
        while self.kind in ("ARRAY", "MULTISET"):
            type_ = SqlType(self.advance().kind, elements=(type_,), offset=type_.offset)
        return type_

    def column_type(self) -> SqlType:
        """The type of a column or field."""
        type_ = self._type_name()
        while (distance := self._collection_after_nullability()) is not None:
            element = type_.with_nullable(self.nullability()) if distance else type_
            type_ = SqlType(self.advance().kind, elements=(element,), offset=type_.offset)
        return type_.with_nullable(self.nullability())

    def _collection_after_nullability(self) -> int | None:
        for distance, nullability in ((0, ()), (1, ("NULL",)), (2, ("NOT", "NULL"))):
            if self.at(*nullability) and self.ahead(distance) in ("ARRAY", "MULTISET"):
                return distance
        return None

    def nullability(self) -> bool:
        """NULL, NOT NULL or nothing."""
        if self.accept("NOT", "NULL"):
            return False
        self.accept("NULL")
        return True

    def _type_name(self) -> SqlType:
        token, kind = self.token, self.kind
        if kind in SIMPLE:
            self.index += 1
            return SqlType(SIMPLE[kind], offset=token.offset)
        found = self._parameterized() or self._composite()
        if found is not None:
            return replace(found, offset=token.offset)
        if kind == "GEOMETRY":
            raise self.error("The type GEOMETRY is not supported.")
        if not self.at_name():
            self.unexpected("type", "name")
        return SqlType("USER_DEFINED", path=self.path(), offset=token.offset)

    def _parameterized(self) -> SqlType | None:
        kind = self.kind
        if kind == "DOUBLE":
            self.index += 1
            self.accept("PRECISION")
            return SqlType("DOUBLE")
        if kind == "TIMESTAMP_LTZ":
            self.index += 1
            return SqlType("TIMESTAMP_LTZ", self._precision())
        if kind in ("BINARY", "VARBINARY"):
            self.index += 1
            varying = kind == "VARBINARY" or self.accept("VARYING")
            return SqlType("VARBINARY" if varying else "BINARY", self._precision())
        if kind in NUMERIC:
            self.index += 1
            parameters = tuple(self.in_parentheses(self.integer)) if self.kind == "(" else ()
            if len(parameters) > 2:
                raise self.error(f"{kind} has at most a precision and a scale.")
            return SqlType(NUMERIC[kind], parameters)
        if kind in ("CHARACTER", "CHAR", "VARCHAR"):
            self.index += 1
            varying = kind == "VARCHAR" or self.accept("VARYING")
            parameters = self._precision()
            if self.accept("CHARACTER"):
                self.expect("SET")
                self.name()
            return SqlType("VARCHAR" if varying else "CHAR", parameters)
        if kind in ("TIME", "TIMESTAMP"):
            self.index += 1
            parameters = self._precision()
            if self.accept("WITHOUT", "TIME", "ZONE"):
                return SqlType(kind, parameters)
            if self.accept("WITH"):
                self.expect("LOCAL", "TIME", "ZONE")
                return SqlType(f"{kind}_LTZ", parameters)
            return SqlType(kind, parameters)
        return None

    def _precision(self) -> tuple[int, ...]:
        value = self.optional_precision()
        return () if value is None else (value,)

    def _composite(self) -> SqlType | None:
        kind = self.kind
        if kind in ("ARRAY", "MULTISET") and self.ahead(1) == "<":
            self.index += 2
            element = self._type_name().with_nullable(self.nullability())
            self.expect(">")
            return SqlType(kind, elements=(element,))
        if kind == "MAP" and self.ahead(1) == "<":
            self.index += 2
            key = self.column_type()
            self.expect(",")
            value = self.column_type()
            self.expect(">")
            return SqlType("MAP", elements=(key, value))
        if kind == "RAW" and self.ahead(1) == "(":
            self.index += 2
            class_name = self.string_value()
            self.expect(",")
            serializer = self.string_value()
            self.expect(")")
            return SqlType("RAW", strings=(class_name, serializer))
        if kind == "ROW":
            return self._row()
        if kind == "STRUCTURED":
            self.index += 1
            self.expect("<")
            class_name = self.string_value()
            fields = self.comma_list(self._field) if self.accept(",") else []
            self.expect(">")
            return SqlType("STRUCTURED", strings=(class_name,), fields=tuple(fields))
        return None

    def _row(self) -> SqlType:
        self.expect("ROW")
        if self.accept("<>"):
            return SqlType("ROW")
        closing = {"<": ">", "(": ")"}.get(self.kind)
        if closing is None:
            self.unexpected("<", "(")
        self.index += 1
        fields = [] if self.kind == closing else self.comma_list(self._field)
        self.expect(closing)
        return SqlType("ROW", fields=tuple(fields))

    def _field(self) -> SqlField:
        name, type_ = self.name().name, self.column_type()
        comment = unquote(self.advance().text) if self.kind == kinds.STRING else None
        return SqlField(name, type_, comment)


def interval_type(qualifier: IntervalQualifier, offset: int) -> SqlType:
    """The type of intervals with these fields."""
    start, end = qualifier.args["start"], qualifier.args.get("end")
    unit = f"{start} TO {end}" if end else str(start)
    precision, fraction = qualifier.args.get("precision"), qualifier.args.get("fraction")
    parameters: tuple[int, ...] = ()
    if precision is not None or fraction is not None:
        parameters = (2 if precision is None else precision, 6 if fraction is None else fraction)
    return SqlType("INTERVAL", parameters, unit=unit, offset=offset)
