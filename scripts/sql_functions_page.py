"""The page docs/sql/functions.md: the functions of Flink's documentation, and which of them there are."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

from firesteel.table.binder.conditional import CONDITIONAL
from firesteel.table.functions.definition import FunctionDefinition
from firesteel.table.functions.registry import find_function

__all__ = ["FLINK_FUNCTIONS", "examples", "exists", "sql_functions_page"]

FLINK_FUNCTIONS: dict[str, str] = {
    "Comparison": "= <> > >= < <= IS_NULL IS_NOT_NULL IS_DISTINCT_FROM IS_NOT_DISTINCT_FROM BETWEEN NOT_BETWEEN LIKE "
    "NOT_LIKE SIMILAR_TO NOT_SIMILAR_TO IN NOT_IN EXISTS IN_SUBQUERY NOT_IN_SUBQUERY",
    "Logical": "OR AND NOT IS_FALSE IS_NOT_FALSE IS_TRUE IS_NOT_TRUE IS_UNKNOWN IS_NOT_UNKNOWN",
    "Arithmetic": "+x -x + - * / % POWER ABS SQRT LN LOG10 LOG2 LOG EXP CEIL CEILING FLOOR SIN SINH COS TAN TANH COT "
    "ASIN ACOS ATAN ATAN2 COSH DEGREES RADIANS SIGN ROUND PI E RAND RAND_INTEGER UUID BIN HEX UNHEX TRUNCATE",
    "String": "|| CHAR_LENGTH CHARACTER_LENGTH UPPER LOWER POSITION PRINTF TRIM LTRIM RTRIM BTRIM REPEAT "
    "REGEXP_REPLACE OVERLAY STARTSWITH ENDSWITH SUBSTRING REPLACE REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL "
    "REGEXP_INSTR REGEXP_SUBSTR TRANSLATE INITCAP CONCAT CONCAT_WS LPAD RPAD FROM_BASE64 "
    "TO_BASE64 ASCII CHR DECODE ENCODE INSTR "
    "LEFT RIGHT LOCATE URL_DECODE URL_ENCODE INET_ATON INET_NTOA PARSE_URL REGEXP REVERSE SPLIT_INDEX STR_TO_MAP "
    "SUBSTR JSON_QUOTE JSON_UNQUOTE ELT",
    "Temporal": "DATE TIME TIMESTAMP INTERVAL LOCALTIME LOCALTIMESTAMP CURRENT_TIME CURRENT_DATE CURRENT_TIMESTAMP NOW "
    "CURRENT_ROW_TIMESTAMP EXTRACT YEAR QUARTER MONTH WEEK DAYOFYEAR DAYOFMONTH DAYOFWEEK HOUR MINUTE SECOND FLOOR_TO "
    "CEIL_TO OVERLAPS DATE_FORMAT TIMESTAMPADD TIMESTAMPDIFF CONVERT_TZ FROM_UNIXTIME UNIX_TIMESTAMP TO_DATE "
    "TO_TIMESTAMP_LTZ TO_TIMESTAMP CURRENT_WATERMARK PROCTIME",
    "Conditional": "CASE NULLIF COALESCE IF IFNULL IS_ALPHA IS_DECIMAL IS_DIGIT GREATEST LEAST",
    "Conversion": "CAST TRY_CAST TYPEOF",
    "Collection": "CARDINALITY ARRAY_AT MAP_AT ELEMENT ARRAY_APPEND ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_POSITION "
    "ARRAY_PREPEND ARRAY_REMOVE ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT ARRAY_UNION ARRAY_CONCAT ARRAY_EXCEPT "
    "ARRAY_INTERSECT ARRAY_MAX ARRAY_JOIN ARRAY_MIN MAP_KEYS MAP_UNION MAP_VALUES MAP_ENTRIES MAP_FROM_ARRAYS SPLIT",
    "JSON": "IS_JSON JSON_EXISTS JSON_STRING JSON_VALUE JSON_QUERY JSON_OBJECT JSON_ARRAY JSON",
    "Variant": "PARSE_JSON TRY_PARSE_JSON VARIANT_AT",
    "Bitmap": "BITMAP_FROM_BYTES BITMAP_TO_ARRAY BITMAP_TO_BYTES BITMAP_TO_STRING BITMAP_CARDINALITY BITMAP_AND "
    "BITMAP_ANDNOT BITMAP_OR BITMAP_XOR BITMAP_BUILD BITMAP_BUILD_AGG BITMAP_BUILD_CARDINALITY_AGG BITMAP_AND_AGG "
    "BITMAP_AND_CARDINALITY_AGG BITMAP_OR_AGG BITMAP_OR_CARDINALITY_AGG BITMAP_XOR_AGG BITMAP_XOR_CARDINALITY_AGG",
    "Value construction and access": "ROW ARRAY MAP FIELD_ACCESS FLATTEN OBJECT_OF OBJECT_UPDATE",
    "Grouping": "GROUP_ID GROUPING GROUPING_ID",
    "Hash": "MD5 SHA1 SHA224 SHA256 SHA384 SHA512 SHA2",
    "Aggregate": "COUNT AVG SUM MAX MIN STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP VARIANCE COLLECT RANK DENSE_RANK "
    "ROW_NUMBER LEAD LAG FIRST_VALUE LAST_VALUE LISTAGG CUME_DIST PERCENT_RANK NTILE ARRAY_AGG JSON_OBJECTAGG "
    "JSON_ARRAYAGG PERCENTILE",
    "Catalog": "CURRENT_DATABASE",
}
"""The functions of Flink 2.3 by the families of its documentation; operators with a word in place of their syntax."""

_SYNTAX = {
    "=": "EQUALS",
    "<>": "NOT_EQUALS",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    "BETWEEN": "GREATER_THAN_OR_EQUAL",
    "NOT_BETWEEN": "GREATER_THAN_OR_EQUAL",
    "NOT_LIKE": "LIKE",
    "SIMILAR_TO": "SIMILAR",
    "NOT_SIMILAR_TO": "SIMILAR",
    "NOT_IN": "IN",
    "IS_UNKNOWN": "IS_NULL",
    "IS_NOT_UNKNOWN": "IS_NOT_NULL",
    "+x": "PLUS",
    "-x": "NEGATE",
    "+": "PLUS",
    "-": "MINUS",
    "*": "TIMES",
    "/": "DIVIDE",
    "%": "MOD",
    "FLOOR_TO": "FLOOR",
    "CEIL_TO": "CEIL",
    "ARRAY_AT": "AT",
    "MAP_AT": "AT",
}
"""The functions to which the binder binds operators and other syntax."""

_SUBQUERIES = {"EXISTS", "IN_SUBQUERY", "NOT_IN_SUBQUERY"}
"""What becomes a join. The queries of tests/support/sql compare it with Flink."""
_GROUPING = {"GROUPING", "GROUPING_ID", "GROUP_ID"}
"""Constants of grouping sets, which the same queries compare."""
_NODES = {
    *("DATE", "TIME", "TIMESTAMP", "INTERVAL", "CASE", "CAST", "TRY_CAST", "FIELD_ACCESS", "FLATTEN"),
    *("OVERLAPS", "VARIANT_AT"),
    *CONDITIONAL,
    *_SUBQUERIES,
    *_GROUPING,
}
"""What the binder makes without a function."""

_OTHER_EXAMPLES = {
    "EXISTS": "EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "IN_SUBQUERY": "k IN (SELECT k FROM u)",
    "NOT_IN_SUBQUERY": "k NOT IN (SELECT k FROM u)",
    "FLATTEN": "r.*",
    **{name: f"{name}()" for name in ("RAND", "UUID", "NOW", "CURRENT_ROW_TIMESTAMP", "PROCTIME")},
    **{name: name for name in ("LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP")},
    "RAND_INTEGER": "RAND_INTEGER(10)",
    "CURRENT_WATERMARK": "CURRENT_WATERMARK(ts)",
    **{name: f"{name}(x)" for name in ("COUNT", "AVG", "SUM", "MAX", "MIN", "FIRST_VALUE", "LAST_VALUE", "COLLECT")},
    **{name: f"{name}(x)" for name in ("STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP", "VARIANCE", "ARRAY_AGG")},
    **{
        name: f"{name}() OVER (PARTITION BY k ORDER BY ts)"
        for name in ("RANK", "DENSE_RANK", "ROW_NUMBER", "CUME_DIST", "PERCENT_RANK")
    },
    "LEAD": "LEAD(x, 1) OVER (PARTITION BY k ORDER BY ts)",
    "LAG": "LAG(x, 1, 0) OVER (PARTITION BY k ORDER BY ts)",
    "NTILE": "NTILE(4) OVER (PARTITION BY k ORDER BY ts)",
    "GROUP_ID": "GROUP_ID()",
    "GROUPING": "GROUPING(k)",
    "GROUPING_ID": "GROUPING_ID(k, s)",
    "LISTAGG": "LISTAGG(s, ', ')",
    "JSON_OBJECTAGG": "JSON_OBJECTAGG(KEY s VALUE x)",
    "JSON_ARRAYAGG": "JSON_ARRAYAGG(x)",
    "PERCENTILE": "PERCENTILE(x, 0.5)",
    "BITMAP_BUILD_AGG": "BITMAP_BUILD_AGG(x)",
    "BITMAP_BUILD_CARDINALITY_AGG": "BITMAP_BUILD_CARDINALITY_AGG(x)",
    **{
        name: f"{name}(BITMAP_BUILD(ARRAY[x, k]))"
        for operation in ("AND", "OR", "XOR")
        for name in (f"BITMAP_{operation}_AGG", f"BITMAP_{operation}_CARDINALITY_AGG")
    },
}
"""Examples over columns of a table, and those whose value is another each time."""

_HEAD = """\
# SQL functions

<!-- Made by scripts/generate_docs.py from the definitions of firesteel/table/functions. -->

The functions of Flink 2.3's page "System (Built-in) Functions" and the state of each. Tests compare the types and
values of a function that is done, on rows and on columns, with those recorded from Flink; the others that are there are
not compared yet. Aggregate functions have types and row bodies, those of windows only types. "vector" says that a
function has a kernel over Arrow arrays for at least some types; otherwise its row body runs in a loop. "Spark" says
that it can be printed as Spark SQL for at least some types. The value of an example is that recorded from Flink.

Table functions are those of [windows](windows.md), and `TO_CHANGELOG` and `FROM_CHANGELOG`
([changelogs as rows](README.md#changelogs-as-rows)).

"""


def _definition(name: str) -> FunctionDefinition | None:
    return find_function(_SYNTAX.get(name, name))


@lru_cache(maxsize=1)
def _recorded() -> str:
    """All expressions that are compared with Flink."""
    directory = Path(__file__).parents[1] / "tests" / "unit" / "table" / "recorded"
    families = json.loads((directory / "differences.json").read_text())
    found = (json.loads((directory / f"{name}.json").read_text()) for name in (*families, "aggregates"))
    return "\n".join(sql for entries in found for sql, type_, *_ in entries if type_ is not None)


def _state(name: str) -> str:
    if not exists(name):
        return "absent"
    if name in _SUBQUERIES | _GROUPING:
        return "done"
    if not name[0].isalpha():
        return "done" if name.strip("x") in _recorded() else "not compared"
    return "done" if re.search(_pattern(name), _recorded()) else "not compared"


def _pattern(name: str) -> str:
    """What an expression with a function contains."""
    if name == "||":
        return r"\|\|"
    if not name[0].isalpha():
        return rf"^[^'+-]*{re.escape(name)}" if "x" not in name else rf"^{re.escape(name.strip('x'))} "
    shown = {
        "ARRAY_AT": r"(ai|ARRAY\[.*\])\[",
        "MAP_AT": r"(mp|MAP\[.*\])\[",
        "VARIANT_AT": r"PARSE_JSON\(.*\)\[",
        "FIELD_ACCESS": r"\)\.\w|r\.x",
        "FLOOR_TO": "FLOOR.* TO",
        "CEIL_TO": "CEIL.* TO",
        "CAST": r"(?<!_)CAST",
    }
    return shown.get(name) or rf"\b({name}|{name.replace('_', ' ')})\b"


@lru_cache(maxsize=1)
def examples() -> dict[str, tuple[str, str | None]]:
    """By function of the page, an expression and its value as Flink gave it; None if it depends on more than itself."""
    directory = Path(__file__).parents[1] / "tests" / "unit" / "table" / "recorded"
    left = [(sql, values[0]) for sql, _, values in json.loads((directory / "example.json").read_text())]
    found: dict[str, tuple[str, str | None]] = {}
    for name in (name for text in FLINK_FUNCTIONS.values() for name in text.split()):
        if name in _OTHER_EXAMPLES:
            found[name] = (_OTHER_EXAMPLES[name], None)
            continue
        chosen = next((entry for entry in left if re.search(_pattern(name), entry[0])), None)
        if chosen is not None:
            left.remove(chosen)
            value = chosen[1]
            found[name] = (chosen[0], value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return found


def exists(name: str) -> bool:
    """Whether a function of Flink's page exists."""
    return name in _NODES or _definition(name) is not None


def sql_functions_page() -> str:
    """The text of the page."""
    names = {family: text.split() for family, text in FLINK_FUNCTIONS.items()}
    states = [_state(name) for found in names.values() for name in found]
    done, there = states.count("done"), states.count("not compared")
    parts = [_HEAD, f"Of {len(states)} functions {done} are done, {there} more are there but not compared.\n"]
    for family, found in names.items():
        parts.append(
            f"\n## {family}\n\n| function | state | vector | Spark | example | value |\n|---|---|---|---|---|---|\n"
        )
        parts.extend(map(_row, found))
    return "".join(parts)


def _row(name: str) -> str:
    definition = _definition(name)
    is_words = name in _SYNTAX or name in _NODES - _GROUPING
    shown = name.replace("|", "\\|").replace("_", " ") if is_words else name.replace("|", "\\|")
    state = _state(name)
    vector = "yes" if name in _NODES or (definition is not None and definition.vector is not None) else ""
    spark = "yes" if name in _NODES or (definition is not None and definition.spark is not None) else ""
    example, value = examples().get(name, ("", None))
    cells = [f"`{shown}`", state, vector, spark, _code(example), "" if value is None else _code(value)]
    return f"| {' | '.join(cells)} |\n"


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`" if escaped.strip() else ""
