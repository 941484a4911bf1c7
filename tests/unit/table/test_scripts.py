"""Scripts, hints, patterns, literals and errors."""

from __future__ import annotations

import pickle

import pytest
from sqlglot import exp

from firesteel.table.parser import (
    SqlParserException,
    parse_expression,
    parse_query,
    parse_script,
    parse_statement,
    parse_type,
    split_script,
)
from firesteel.table.parser.hints import Hint, hints_of_query, hints_of_table, table_options
from firesteel.table.parser.nodes import MatchRecognize
from firesteel.table.parser.pattern import variables_of
from firesteel.table.parser.types import to_logical_type

SCRIPT = """-- first; a comment
CREATE VIEW v AS SELECT ';' AS `a;b`; /* ; */
BEGIN STATEMENT SET;
INSERT INTO t SELECT CASE WHEN a THEN 1 END FROM v;
END;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO t SELECT 1;
  INSERT INTO u SELECT CASE a WHEN 1 THEN 2 END FROM v;
END;;
SELECT 1"""


def test_a_script_is_split_where_statements_end() -> None:
    sources = list(split_script(SCRIPT))
    assert [source.line for source in sources] == [2, 3, 4, 5, 6, 10]
    assert sources[4].text.endswith("END")
    assert [source.text for source in sources] == [parse.source.text for parse in parse_script(SCRIPT) if parse.source]


def test_an_error_in_a_script_has_its_line() -> None:
    with pytest.raises(SqlParserException) as caught:
        parse_script("SELECT 1;\nSELECT 2;\n  SELEC 3;")
    assert (caught.value.line, caught.value.column) == (3, 3)
    assert caught.value.hint == "Did you mean SELECT?"


def test_hints() -> None:
    query = parse_query(
        "SELECT /*+ BROADCAST(a, b), state_ttl('o' = '1d') */ 1 FROM t /*+ OPTIONS('k' = 'v', k2 = 'w') */"
    )
    assert isinstance(query, exp.Select)
    broadcast, ttl = hints_of_query(query)
    assert (broadcast.name, broadcast.arguments) == ("BROADCAST", ("a", "b"))
    assert (ttl.name, ttl.option_map()) == ("STATE_TTL", {"o": "1d"})
    assert table_options(hints_of_table(query.args["from_"].this)) == {"k": "v", "k2": "w"}


def test_a_table_has_options_only() -> None:
    with pytest.raises(SqlParserException, match="cannot have the hint BROADCAST"):
        table_options((Hint("BROADCAST"),))


def test_a_pattern() -> None:
    query = parse_query(
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x AFTER MATCH SKIP TO LAST B "
        "PATTERN (A B+? (C | D){2,} E{,3} $) WITHIN INTERVAL '1' HOUR DEFINE A AS A.x > 1) AS m"
    )
    match = query.args["from_"].this
    assert isinstance(match, MatchRecognize)
    pattern = match.args["pattern"].this
    assert str(pattern) == "(A B{1,}? (C | D){2,} E{0,3}) $"
    assert [variable.name for variable in variables_of(pattern.pattern)] == ["A", "B", "C", "D", "E"]
    assert isinstance(match.args["within"], exp.Interval)
    assert match.args["alias"].name == "m"


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'it''s'", "it's"),
        ("'a' 'b'", "ab"),
        (r"U&'\0041\\'", "A\\"),
        ("U&'!0041' UESCAPE '!'", "A"),
        (r"E'a\n\x41\101\u0041'", "a\nAAA"),
        ("_UTF8'ü'", "ü"),
    ],
)
def test_strings(sql: str, value: str) -> None:
    assert parse_expression(sql) == exp.Literal.string(value)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT a FRM t x", "Did you mean FROM instead of FRM?"),
        ("SELECT a FROM t WERE a = 1", "Did you mean WHERE instead of WERE?"),
        ("SELECT a FROM t WHERE a != 1", "Write <> for not equal."),
        ("SELECT 'a", "Write '' for a quote in a string."),
        ('SELECT "a"', "Names are quoted with backticks, strings with single quotes."),
        ("CREATE TABLE t (day INT)", "day is a reserved word: quote it with backticks, `day`."),
        ("SELECT a FROM t OFFSET 1 LIMIT 2", "Write LIMIT n OFFSET m."),
        ("SHOW TABELS", "Did you mean TABLES?"),
    ],
)
def test_hints_of_errors(sql: str, hint: str) -> None:
    with pytest.raises(SqlParserException) as caught:
        parse_statement(sql)
    assert caught.value.hint == hint


def test_a_statement_that_is_nested_too_deeply() -> None:
    with pytest.raises(SqlParserException, match="nested too deeply"):
        parse_statement(f"SELECT {'(' * 1000}1{')' * 1000}")
    assert isinstance(parse_expression(f"{'(' * 40}1{')' * 40}"), exp.Literal)
    assert parse_expression(" + ".join(["a"] * 2000)).this.this is not None


def test_an_error_can_be_pickled() -> None:
    with pytest.raises(SqlParserException) as caught:
        parse_statement("SELECT\n\tFROM")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.excerpt == "\tFROM\n\t^"


@pytest.mark.parametrize("sql", ["DECIMAL(39, 2)", "VARCHAR(0)", "TIMESTAMP(10)", "my.type", "ROW<a INT, a INT>"])
def test_types_that_do_not_exist(sql: str) -> None:
    with pytest.raises(SqlParserException) as caught:
        to_logical_type(parse_type(sql), sql)
    assert caught.value.line == 1
