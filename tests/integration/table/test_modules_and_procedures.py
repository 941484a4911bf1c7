"""Functions of modules, and procedures of catalogs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from firesteel.common import Row
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog import GenericInMemoryCatalog, ObjectPath
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.modules import Module, register_module
from firesteel.table.catalog.procedures import Procedure, ProcedureContext
from firesteel.table.udf import udf
from firesteel.testing.in_process import InProcessExecutor


def _environment() -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    created._session.environment._executor = InProcessExecutor()
    return created


def _rows(environment: TableEnvironment, sql: str) -> list[Row]:
    with environment.execute_sql(sql).collect() as rows:
        return list(rows)


class _Shouting(Module):
    def __init__(self, end: str) -> None:
        self._end = end

    def list_functions(self) -> list[str]:
        return ["upper", "shout"]

    def get_function_definition(self, name: str) -> Any:
        end = self._end
        return udf(lambda text: text + end, result_type=DataTypes.STRING()) if name in self.list_functions() else None


def test_functions_of_modules() -> None:
    """The first module that has a function counts."""
    register_module("shouting", lambda options: _Shouting(options.get("end", "!")))
    environment = _environment()
    environment.execute_sql("LOAD MODULE shouting WITH ('end' = '?')")
    query = "SELECT UPPER(x), shout(x) FROM (VALUES ('a')) AS t (x)"
    assert _rows(environment, query) == [Row("A", "a?")]
    assert "shout" in environment.list_functions()
    environment.use_modules("shouting", "core")
    assert _rows(environment, query) == [Row("a?", "a?")]
    environment.use_modules("core")
    assert [(entry.name(), entry.used()) for entry in environment.list_full_modules()] == [
        ("core", True),
        ("shouting", False),
    ]
    with pytest.raises(ValidationError, match="SHOUT"):
        environment.execute_sql(query)
    environment.unload_module("shouting")
    assert environment.list_modules() == ["core"]


class _Repeat(Procedure):
    argument_types: ClassVar = {"text": DataTypes.STRING(), "times": DataTypes.BIGINT(), "day": DataTypes.DATE()}
    result_type = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("text", DataTypes.STRING())])

    def call(  # type: ignore[override]
        self, context: ProcedureContext, text: str, times: int = 2, day: dt.date | None = None
    ) -> Iterable[Any]:
        assert context.get_execution_environment() is not None
        for number in range(times):
            yield number, f"{text} {day}"


class _Count(Procedure):
    result_type = DataTypes.BIGINT()

    def call(self, context: ProcedureContext) -> Iterable[Any]:  # type: ignore[override]
        return [42]


class _Catalog(GenericInMemoryCatalog):
    def list_procedures(self, database_name: str) -> list[str]:
        return ["count", "repeat"] if database_name == "system" else []

    def get_procedure(self, procedure_path: ObjectPath) -> object:
        found = {"system.count": _Count(), "system.repeat": _Repeat()}
        if procedure_path.get_full_name() not in found:
            raise CatalogException(f"Procedure {procedure_path} does not exist in Catalog {self.name}.")
        return found[procedure_path.get_full_name()]


@pytest.fixture
def environment() -> TableEnvironment:
    created = _environment()
    created.register_catalog("c", _Catalog("c", "system"))
    return created


def test_procedures(environment: TableEnvironment) -> None:
    assert _rows(environment, "SHOW PROCEDURES IN c.`system`") == [Row("count"), Row("repeat")]
    assert _rows(environment, "CALL c.`system`.`count`()") == [Row(42)]
    result = environment.execute_sql("CALL c.`system`.`repeat`('a', 1 + 0, DATE '2024-02-29')")
    assert result.get_resolved_schema().get_column_names() == ["n", "text"]
    with result.collect() as rows:
        assert list(rows) == [Row(0, "a 2024-02-29")]
    environment.use_catalog("c")
    named = "CALL `repeat`(`day` => CAST(NULL AS DATE), text => 'b')"
    assert _rows(environment, named) == [Row(0, "b None"), Row(1, "b None")]


@pytest.mark.parametrize(("sql", "message"), [
    ("CALL c.`system`.nope()", "Procedure system.nope does not exist"),
    ("CALL c.`system`.`repeat`()", "argument 'text'"),
    ("CALL c.`system`.`repeat`('a', 'b')", "Invalid argument 'times'"),
    ("CALL c.`system`.`repeat`('a', 1, CURRENT_DATE, 4)", "No match found"),
    ("CALL c.`system`.`repeat`('a', txet => 'b')", "no parameter 'txet'"),
    ("CALL nope.`system`.`repeat`('a')", "no catalog 'nope'"),
])  # fmt: skip
def test_calls_that_are_refused(environment: TableEnvironment, sql: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        environment.execute_sql(sql)
