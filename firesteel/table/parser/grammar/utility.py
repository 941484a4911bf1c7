"""SHOW, DESCRIBE, USE, LOAD, SET, EXPLAIN, plans and jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.dml import DmlGrammar
from firesteel.table.parser.statements import utility
from firesteel.table.parser.statements.base import ObjectPath, Statement
from firesteel.table.parser.statements.dml import Query
from firesteel.table.parser.statements.tables import CreateTable
from firesteel.table.parser.statements.utility import LikePattern, Show

__all__ = ["UtilityGrammar"]

EXPLAIN_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
DESCRIBED = ("CATALOG", "DATABASE", "FUNCTION", "MODEL", "CONNECTION")
SHOWN = (
    "CATALOGS",
    "CURRENT",
    "DATABASES",
    "TABLES",
    "VIEWS",
    "MATERIALIZED",
    "COLUMNS",
    "CREATE",
    "PARTITIONS",
    "FUNCTIONS",
    "USER",
    "PROCEDURES",
    "MODELS",
    "CONNECTIONS",
    "MODULES",
    "FULL",
    "JARS",
    "JOBS",
)


class UtilityGrammar(DmlGrammar):
    """Statements that neither define objects nor change tables."""

    # SHOW

    def show(self) -> Statement:
        """SHOW of anything."""
        self.expect("SHOW")
        word = self.expect_any(*SHOWN)
        if word == "CATALOGS":
            return Show(word, like=self._like_pattern(ignoring_case=True))
        if word == "CURRENT":
            return Show(f"CURRENT {self.expect_any('CATALOG', 'DATABASE')}")
        if word == "CREATE":
            return self._show_create()
        if word == "PARTITIONS":
            path = self.path()
            return utility.ShowPartitions(path, self.partition_spec() if self.accept("PARTITION") else ())
        if word == "COLUMNS":
            self.expect_any("FROM", "IN")
            path = self.path()
            return Show(word, path, self._like_pattern(ignoring_case=False))
        if word in ("USER", "MATERIALIZED"):
            word = f"{word} {self.expect('FUNCTIONS' if word == 'USER' else 'TABLES').kind}"
        elif word == "FULL":
            self.expect("MODULES")
            return Show("FULL MODULES")
        elif word in ("MODULES", "JARS", "JOBS"):
            return Show(word)
        ignoring_case = word.endswith(("FUNCTIONS", "PROCEDURES", "DATABASES"))
        return Show(word, self._from_path(word), self._like_pattern(ignoring_case))

    def _from_path(self, word: str) -> ObjectPath | None:
        if not self.accept_any("FROM", "IN"):
            return None
        token, path = self.token, self.path()
        if word == "DATABASES" and len(path) > 1:
            raise self.error("The name of a catalog has one part.", token)
        return path

    def _like_pattern(self, ignoring_case: bool) -> LikePattern | None:
        negated = self.accept("NOT")
        words = ("LIKE", "ILIKE") if ignoring_case else ("LIKE",)
        if negated:
            word: str | None = self.expect_any(*words)
        else:
            word = self.accept_any(*words)
        return None if word is None else LikePattern(self.quoted_text(), negated, word == "ILIKE")

    def _show_create(self) -> Statement:
        if self.accept("OR"):
            self.expect("ALTER")
            if self.kind != "MATERIALIZED":
                self.unexpected("MATERIALIZED")
        kind = self.expect_any("TABLE", "VIEW", "CATALOG", "MODEL", "CONNECTION", "MATERIALIZED")
        if kind == "CATALOG":
            return utility.ShowCreate("CATALOG", (self.name().name,))
        if kind == "MATERIALIZED":
            self.expect("TABLE")
            return utility.ShowCreate("MATERIALIZED TABLE", self.path())
        return utility.ShowCreate(cast("Literal['TABLE']", kind), self.path())

    # DESCRIBE

    def describe(self) -> Statement:
        """DESCRIBE of anything; DESC is the same, but not for queries."""
        word = self.expect_any("DESCRIBE", "DESC")
        if self.accept("JOB"):
            return utility.DescribeJob(self.quoted_text())
        if self.kind in DESCRIBED:
            kind = cast("Literal['CATALOG']", self.advance().kind)
            extended = self.accept("EXTENDED")
            described = (self.name().name,) if kind == "CATALOG" else self.path()
            return utility.DescribeObject(kind, described, extended)
        if self.kind == "EXTENDED" or self.at_name():
            extended = self.accept("EXTENDED")
            return utility.DescribeObject("TABLE", self.path(), extended)
        if word == "DESC":
            self.unexpected("name", "EXTENDED", *DESCRIBED)
        if self.accept("TABLE"):
            path = self.path()
            return utility.DescribeObject("TABLE", path, column=self.name().name if self.at_name() else None)
        self.accept("STATEMENT")
        return utility.DescribeStatement(self._query_or_change())

    def _query_or_change(self) -> Statement:
        changes: dict[str, Callable[[], Statement]] = {
            "INSERT": self.insert,
            "UPSERT": self.insert,
            "UPDATE": self.update,
            "DELETE": self.delete,
        }
        change = changes.get(self.kind)
        return Query(self.query()) if change is None else change()

    # USE, LOAD, SET, JAR

    def use(self) -> Statement:
        """USE of a catalog, a database or modules."""
        self.expect("USE")
        if self.accept("CATALOG"):
            return utility.UseCatalog(self.name().name)
        if self.accept("MODULES"):
            return utility.UseModules(tuple(name.name for name in self.comma_list(self.name)))
        return utility.UseDatabase(self.path())

    def load(self) -> Statement:
        """LOAD MODULE."""
        self.expect("LOAD", "MODULE")
        name = self.name().name
        return utility.LoadModule(name, self.with_properties())

    def unload(self) -> Statement:
        """UNLOAD MODULE."""
        self.expect("UNLOAD", "MODULE")
        return utility.UnloadModule(self.name().name)

    def jar(self) -> Statement:
        """ADD JAR or REMOVE JAR."""
        action = cast("Literal['ADD', 'REMOVE']", self.expect_any("ADD", "REMOVE"))
        self.expect("JAR")
        return utility.Jar(action, self.quoted_text())

    # jobs, procedures, statistics

    def stop(self) -> Statement:
        """STOP JOB."""
        self.expect("STOP", "JOB")
        job_id = self.quoted_text()
        with_savepoint = self.accept("WITH", "SAVEPOINT")
        token = self.token
        with_drain = self.accept("WITH", "DRAIN")
        if with_drain and not with_savepoint:
            raise self.error("WITH DRAIN needs WITH SAVEPOINT.", token)
        return utility.StopJob(job_id, with_savepoint, with_drain)

    def call(self) -> Statement:
        """CALL of a procedure."""
        self.expect("CALL")
        return utility.ProcedureCall(self.routine_call(Context.SUB_QUERY))

    def analyze(self) -> Statement:
        """ANALYZE TABLE."""
        self.expect("ANALYZE", "TABLE")
        path = self.path()
        partition = self.partition_spec_with_open_keys() if self.accept("PARTITION") else ()
        self.expect("COMPUTE", "STATISTICS")
        if not self.accept("FOR"):
            return utility.AnalyzeTable(path, partition)
        if self.accept("ALL"):
            self.expect("COLUMNS")
            return utility.AnalyzeTable(path, partition, all_columns=True)
        self.expect("COLUMNS")
        columns = tuple(name.name for name in self.comma_list(self.name))
        return utility.AnalyzeTable(path, partition, columns)

    # EXPLAIN and plans

    def explain(self) -> Statement:
        """EXPLAIN of a query or a statement that changes tables."""
        self.expect("EXPLAIN")
        details: list[str] = []
        if not self.accept("PLAN", "FOR") and self.kind in EXPLAIN_DETAILS:
            details = self.comma_list(lambda: self.expect_any(*EXPLAIN_DETAILS))
            if len(set(details)) != len(details):
                raise self.error("A detail of EXPLAIN is given twice.")
        return utility.Explain(self._explained(), tuple(details))

    def _explained(self) -> Statement:
        if self.kind == "STATEMENT":
            return self.statement_set()
        if self.kind == "EXECUTE":
            return self.execute()
        if self.kind in ("INSERT", "UPSERT"):
            return self.insert()
        if self.at_replace_table():
            return self.replace_table()
        if self.kind == "CREATE":
            token, statement = self.token, self.create()
            if not isinstance(statement, CreateTable) or statement.query is None:
                raise self.error("EXPLAIN supports CREATE TABLE … AS only.", token)
            return statement
        return Query(self.query())

    def at_replace_table(self) -> bool:
        """Whether REPLACE TABLE is next."""
        return self.at("REPLACE", "TABLE") or self.at("REPLACE", "TEMPORARY", "TABLE")

    def execute(self) -> Statement:
        """EXECUTE of a plan, a statement set, an INSERT or a query."""
        self.expect("EXECUTE")
        if self.kind == "STATEMENT":
            return utility.Execute(self.statement_set())
        if self.kind in ("INSERT", "UPSERT"):
            return utility.Execute(self.insert())
        return utility.Execute(Query(self.query()))

    def execute_plan(self) -> Statement:
        """EXECUTE PLAN."""
        self.expect("EXECUTE", "PLAN")
        return utility.ExecutePlan(self.string_value())

    def compile(self) -> Statement:
        """COMPILE PLAN and COMPILE AND EXECUTE PLAN."""
        self.expect("COMPILE")
        execute = self.accept("AND", "EXECUTE")
        self.expect("PLAN")
        path = self.string_value()
        if_not_exists = not execute and self.if_not_exists()
        self.expect("FOR")
        statement = self.statement_set() if self.kind == "STATEMENT" else self.insert()
        return utility.CompilePlan(path, statement, if_not_exists, execute)

    # SET and RESET

    def set(self) -> Statement:
        """SET; also ``SET key = value`` without quotes, as Flink's clients have it."""
        self.expect("SET")
        if self.kind in (kinds.END, ";"):
            return utility.SetOption()
        key = self.string_value()
        self.expect("=")
        return utility.SetOption(key, self.string_value())

    def reset(self) -> Statement:
        """RESET."""
        self.expect("RESET")
        return utility.ResetOption() if self.kind in (kinds.END, ";") else utility.ResetOption(self.string_value())
