"""Trees and statements that the parser of Flink SQL makes."""

from __future__ import annotations

import importlib
import sys

import pytest
from sqlglot import exp

from firesteel.table.parser import SqlParserException, parse_expression, parse_query, parse_statement, parse_type
from firesteel.table.parser.nodes import Call, JoinTree, TableArgument, TableFunction, column_path, offset_of
from firesteel.table.parser.statements.tables import (
    ComputedColumn,
    CreateTable,
    Distribution,
    LikeOption,
    MetadataColumn,
    PhysicalColumn,
)
from firesteel.table.parser.types import to_logical_type


def test_create_table() -> None:
    statement = parse_statement(
        """CREATE TEMPORARY TABLE IF NOT EXISTS c.d.t (
          a INT NOT NULL COMMENT 'key', b AS a + 1, k STRING METADATA FROM 'key' VIRTUAL, ts TIMESTAMP(3),
          WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED
        ) COMMENT 'x' DISTRIBUTED BY HASH(a) INTO 4 BUCKETS PARTITIONED BY (a)
        WITH ('connector' = 'kafka') LIKE u (INCLUDING ALL EXCLUDING OPTIONS);"""
    )
    assert isinstance(statement, CreateTable)
    assert statement.path == ("c", "d", "t")
    assert statement.temporary
    assert statement.if_not_exists
    assert statement.schema is not None
    a, b, k, _ = statement.schema.columns
    assert isinstance(a, PhysicalColumn)
    assert str(a.type) == "INT NOT NULL"
    assert a.comment == "key"
    assert isinstance(b, ComputedColumn)
    assert isinstance(b.expression, exp.Add)
    assert isinstance(k, MetadataColumn)
    assert (k.key, k.virtual) == ("key", True)
    assert statement.schema.watermark is not None
    assert statement.schema.watermark.column == ("ts",)
    assert statement.schema.primary_key is not None
    assert statement.schema.primary_key.enforced is False
    assert statement.distribution == Distribution("HASH", ("a",), 4)
    assert statement.options == (("connector", "kafka"),)
    assert statement.like is not None
    assert statement.like.options == (LikeOption("INCLUDING", "ALL"), LikeOption("EXCLUDING", "OPTIONS"))
    assert statement.source is not None
    assert statement.source.text.startswith("CREATE TEMPORARY")


def test_a_window_function_with_named_arguments() -> None:
    query = parse_query(
        "SELECT window_end, COUNT(DISTINCT b) FROM TUMBLE("
        "DATA => TABLE t PARTITION BY k ORDER BY ts DESC, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' HOUR) AS w"
    )
    function = query.args["from_"].this
    assert isinstance(function, TableFunction)
    assert function.this.function_name == "TUMBLE"
    data = function.this.expressions[0]
    assert isinstance(data, exp.Kwarg)
    assert isinstance(data.expression, TableArgument)
    assert [name.name for name in data.expression.args["partition_by"]] == ["k"]
    count = query.expressions[1]
    assert isinstance(count, Call)
    assert count.args["quantifier"] == "DISTINCT"


@pytest.mark.parametrize("name", ["SPLIT", "TO_DATE", "LOG", "IF", "COALESCE", "COUNT", "DATE_FORMAT"])
def test_functions_are_names(name: str) -> None:
    call = parse_expression(f"{name}(a, b)")
    assert isinstance(call, Call)
    assert call.this == name


def test_names_have_parts_and_places() -> None:
    query = parse_query("SELECT\n  c.d.t.a FROM t")
    assert column_path(query.expressions[0]) == ("c", "d", "t", "a")
    assert offset_of(query.expressions[0]) == 9


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("INT NOT NULL", "INT NOT NULL"),
        ("VARCHAR(3)", "VARCHAR(3)"),
        ("DECIMAL(10, 2)", "DECIMAL(10, 2)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("ROW<a INT NOT NULL, b ARRAY<STRING>>", "ROW<`a` INT NOT NULL, `b` ARRAY<STRING>>"),
        ("MAP<STRING, INT NOT NULL> NOT NULL", "MAP<STRING, INT NOT NULL> NOT NULL"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("DOUBLE PRECISION", "DOUBLE"),
    ],
)
def test_types(sql: str, text: str) -> None:
    assert to_logical_type(parse_type(sql), sql).as_summary_string() == text


def test_an_error_has_its_place_and_a_hint() -> None:
    with pytest.raises(SqlParserException) as caught:
        parse_statement("SELECT a,\n       order FROM t")
    assert (caught.value.line, caught.value.column) == (2, 8)
    assert caught.value.excerpt == "       order FROM t\n       ^"
    assert caught.value.hint == "order is a reserved word: quote it with backticks, `order`."


def test_a_misspelled_keyword_is_named() -> None:
    with pytest.raises(SqlParserException) as caught:
        parse_statement("CREATE TABEL t (a INT)")
    assert caught.value.hint == "Did you mean TABLE?"


def test_without_sqlglot_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    for name in [name for name in sys.modules if name.startswith("firesteel.table.parser")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"pip install 'firesteel\[sql\]'"):
        importlib.import_module("firesteel.table.parser")


def test_the_from_clause() -> None:
    query = parse_query(
        "SELECT 1 FROM a, LATERAL TABLE(f(a.x)) AS l (y) LEFT JOIN r FOR SYSTEM_TIME AS OF a.ts AS s ON a.k = s.k "
        "CROSS JOIN UNNEST(a.z) WITH ORDINALITY AS u (v, n) JOIN (c JOIN d USING (i)) ON TRUE GROUP BY DISTINCT a, ()"
    )
    lateral, right, unnest, tree = (join.this for join in query.args["joins"])
    assert isinstance(lateral, exp.Lateral)
    assert isinstance(lateral.this, TableFunction)
    assert column_path(right.args["system_time"]) == ("a", "ts")
    assert right.alias == "s"
    assert unnest.args["offset"] is True
    assert isinstance(tree, JoinTree)
    group = query.args["group"]
    assert group.args["distinct"] is True
    assert group.expressions[1] == exp.Tuple(expressions=[])


def test_set_operations_and_limits() -> None:
    query = parse_query(
        "SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3 ORDER BY 1 OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY"
    )
    assert isinstance(query, exp.Union)
    assert query.args["distinct"] is False
    assert isinstance(query.expression, exp.Intersect)
    assert query.args["limit"].expression == exp.Literal.number("3")
    assert query.args["offset"].expression == exp.Literal.number("2")
