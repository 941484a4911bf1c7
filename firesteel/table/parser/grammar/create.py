"""CREATE and REPLACE."""

from __future__ import annotations

from typing import Literal, cast

from sqlglot import exp

from firesteel.table.parser.grammar.clauses import ClauseGrammar
from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.nodes import TemporalLiteral
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.statements.objects import (
    CreateCatalog,
    CreateConnection,
    CreateDatabase,
    CreateFunction,
    CreateModel,
    FunctionResource,
)
from firesteel.table.parser.statements.tables import (
    CreateMaterializedTable,
    CreateTable,
    CreateView,
    LikeOption,
    StartMode,
    TableLike,
    TableSchema,
)

__all__ = ["CreateGrammar"]

CREATED = ("TABLE", "VIEW", "MATERIALIZED", "CATALOG", "DATABASE", "FUNCTION", "MODEL", "CONNECTION", "TEMPORARY")
LANGUAGES = ("JAVA", "SCALA", "SQL", "PYTHON")
STRATEGIES = ("INCLUDING", "EXCLUDING", "OVERWRITING")
FEATURES = (
    "ALL",
    "CONSTRAINTS",
    "DISTRIBUTION",
    "GENERATED",
    "METADATA",
    "OPTIONS",
    "PARTITIONS",
    "WATERMARKS",
)
START_MODES = (
    "FROM_BEGINNING",
    "FROM_NOW",
    "FROM_TIMESTAMP",
    "RESUME_OR_FROM_BEGINNING",
    "RESUME_OR_FROM_NOW",
    "RESUME_OR_FROM_TIMESTAMP",
)


class CreateGrammar(ClauseGrammar):
    """CREATE and REPLACE."""

    def create(self) -> Statement:
        """CREATE of any object."""
        self.expect("CREATE")
        replace = self.accept("OR", "REPLACE")
        temporary = self.accept("TEMPORARY")
        kind = self.kind
        if kind == "TABLE":
            self.index += 1
            return self._table(temporary, replace)
        if kind == "VIEW":
            return self._view(temporary, replace)
        if kind in ("MATERIALIZED", "OR"):
            return self._materialized_table(temporary, replace)
        if kind == "CATALOG":
            return self._catalog()
        if kind == "DATABASE":
            return self._database()
        if kind == "MODEL":
            return self._model(temporary)
        if kind == "FUNCTION" or self.at("SYSTEM", "FUNCTION"):
            return self._function(temporary)
        if kind != "CONNECTION" and not self.at("SYSTEM", "CONNECTION"):
            self.unexpected(*CREATED)
        return self._connection(temporary)

    # tables

    def _table(self, temporary: bool, replace: bool) -> Statement:
        if_not_exists = self.if_not_exists()
        path = self.path()
        token = self.token
        schema = self.table_schema() if self.kind == "(" else None
        comment = self.comment()
        distribution = self.distribution() if self.accept("DISTRIBUTED") else None
        partition_keys = self._partitioned_by()
        options = self.with_properties()
        like, query = None, None
        if self.accept("LIKE"):
            like = self._like()
        elif self.accept("AS"):
            query = self.query()
        if query is None and schema is not None and schema.column_names:
            raise self.error("Columns need types, except in CREATE TABLE … AS.", token)
        return CreateTable(
            path,
            schema,
            comment,
            distribution,
            partition_keys,
            options,
            like,
            query,
            temporary,
            if_not_exists,
            replace=replace,
        )

    def replace_table(self) -> Statement:
        """REPLACE TABLE AS."""
        self.expect("REPLACE")
        temporary = self.accept("TEMPORARY")
        self.expect("TABLE")
        if_not_exists = self.if_not_exists()
        path = self.path()
        schema = self.table_schema() if self.kind == "(" else None
        comment = self.comment()
        distribution = self.distribution() if self.accept("DISTRIBUTED") else None
        partition_keys = self._partitioned_by()
        options = self.with_properties()
        self.expect("AS")
        return CreateTable(
            path,
            schema,
            comment,
            distribution,
            partition_keys,
            options,
            None,
            self.query(),
            temporary,
            if_not_exists,
            replace=True,
            or_create=False,
        )

    def _partitioned_by(self) -> tuple[str, ...]:
        if not self.accept("PARTITIONED"):
            return ()
        self.expect("BY")
        return self.name_list()

    def _like(self) -> TableLike:
        table = self.path()
        options: list[LikeOption] = []
        if self.accept("("):
            while not options or self.kind != ")":
                strategy = self.expect_any(*STRATEGIES)
                options.append(LikeOption(strategy, self.expect_any(*FEATURES)))
            self.expect(")")
        return TableLike(table, tuple(options))

    def _view(self, temporary: bool, replace: bool) -> Statement:
        self.expect("VIEW")
        if_not_exists = self.if_not_exists()
        path = self.path()
        columns = self.name_list() if self.kind == "(" else ()
        comment = self.comment()
        self.expect("AS")
        return CreateView(path, self.spanned(self.query), columns, comment, temporary, if_not_exists, replace)

    def _materialized_table(self, temporary: bool, replace: bool) -> Statement:
        or_alter = self.accept("OR", "ALTER")
        token = self.expect("MATERIALIZED")
        if temporary:
            raise self.error("A materialized table cannot be temporary.", token)
        if replace:
            raise self.error("A materialized table cannot be replaced.", token, hint="Write CREATE OR ALTER.")
        self.expect("TABLE")
        path = self.path()
        schema = self.table_schema() if self.kind == "(" else None
        comment = self.comment()
        distribution = self.distribution() if self.accept("DISTRIBUTED") else None
        partition_keys = self._partitioned_by()
        options = self.with_properties()
        start_mode = self._start_mode() if self.accept("START_MODE", "=") else None
        freshness = self.freshness() if self.kind == "FRESHNESS" else None
        refresh_mode = self.refresh_mode() if self.kind == "REFRESH_MODE" else None
        self.expect("AS")
        return CreateMaterializedTable(
            path,
            self.spanned(self.query),
            schema,
            comment,
            distribution,
            partition_keys,
            options,
            start_mode,
            freshness,
            refresh_mode,
            or_alter,
        )

    def _start_mode(self) -> StartMode:
        kind = self.expect_any(*START_MODES)
        if kind.endswith("TIMESTAMP"):
            self.expect("(")
            if self.kind != "TIMESTAMP":
                self.unexpected("TIMESTAMP")
            timestamp = self.temporal_literal()
            self.expect(")")
            return StartMode(kind, timestamp=cast("TemporalLiteral", timestamp))
        interval = None
        if kind.endswith("NOW") and self.accept("("):
            interval = self._interval_only()
            self.expect(")")
        return StartMode(kind, interval)

    def freshness(self) -> exp.Expression:
        """FRESHNESS = and an interval."""
        self.expect("FRESHNESS", "=")
        return self._interval_only()

    def _interval_only(self) -> exp.Expression:
        token = self.token
        value = self.expression(Context.NON_QUERY)
        inner = value.this if isinstance(value, exp.Neg) else value
        if not isinstance(inner, exp.Interval) or not isinstance(inner.this, exp.Literal) or not inner.this.is_string:
            raise self.error("An interval is expected here.", token, hint="Write INTERVAL '1' MINUTE.")
        return value

    def refresh_mode(self) -> Literal["FULL", "CONTINUOUS"]:
        """REFRESH_MODE = FULL or CONTINUOUS."""
        self.expect("REFRESH_MODE", "=")
        return cast("Literal['FULL', 'CONTINUOUS']", self.expect_any("FULL", "CONTINUOUS"))

    # other objects

    def _catalog(self) -> Statement:
        self.expect("CATALOG")
        if_not_exists = self.if_not_exists()
        name = self.name().name
        comment = self.comment()
        return CreateCatalog(name, self.with_properties(), comment, if_not_exists)

    def _database(self) -> Statement:
        self.expect("DATABASE")
        if_not_exists = self.if_not_exists()
        path = self.path()
        comment = self.comment()
        return CreateDatabase(path, self.with_properties(), comment, if_not_exists)

    def _system(self, temporary: bool, what: str) -> bool:
        token = self.token
        system = self.accept("SYSTEM")
        if system and not temporary:
            raise self.error(f"A system {what} has to be temporary.", token)
        return system

    def _function(self, temporary: bool) -> Statement:
        system = self._system(temporary, "function")
        self.expect("FUNCTION")
        if_not_exists = self.if_not_exists()
        path = (self.name().name,) if system else self.path()
        self.expect("AS")
        class_name = self.quoted_text()
        token = self.token
        language = self.expect_any(*LANGUAGES) if self.accept("LANGUAGE") else None
        resources: list[FunctionResource] = []
        if self.accept("USING"):
            if language in ("SQL", "PYTHON"):
                raise self.error(f"USING is not supported for functions in {language}.", token)
            resources = self.comma_list(self._resource)
        options = self.with_properties()
        return CreateFunction(path, class_name, language, tuple(resources), options, temporary, system, if_not_exists)

    def _resource(self) -> FunctionResource:
        kind = cast("Literal['JAR', 'ARTIFACT']", self.expect_any("JAR", "ARTIFACT"))
        return FunctionResource(kind, self.quoted_text())

    def _model(self, temporary: bool) -> Statement:
        self.expect("MODEL")
        if_not_exists = self.if_not_exists()
        path = self.path()
        columns_of_input = self._model_columns("INPUT")
        columns_of_output = self._model_columns("OUTPUT")
        comment = self.comment()
        options = self.with_properties()
        query = self.query() if self.accept("AS") else None
        return CreateModel(path, columns_of_input, columns_of_output, comment, options, query, temporary, if_not_exists)

    def _model_columns(self, word: str) -> TableSchema | None:
        if not self.accept(word):
            return None
        self.expect("(")
        schema = self._schema_items()
        self.expect(")")
        return schema

    def _connection(self, temporary: bool) -> Statement:
        system = self._system(temporary, "connection")
        self.expect("CONNECTION")
        if_not_exists = self.if_not_exists()
        path = self.path()
        comment = self.comment()
        self.expect("WITH")
        return CreateConnection(path, self.properties(), comment, temporary, system, if_not_exists)
