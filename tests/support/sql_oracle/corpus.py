"""The statements of the corpus, random mutations of them, and random expressions.

The files beside this module have one statement per line, by the pages of Flink's documentation. A line of
``expressions.txt`` is an item of SELECT, one of ``types.txt`` the type of a column and of a cast.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

__all__ = ["draw_expression", "mutate", "read_statements"]

CORPUS = Path(__file__).parent / "corpus"
FILES = ("queries.sql", "ddl.sql", "dml.sql", "utility.sql")
TOKEN = re.compile(r"'(?:[^']|'')*'|`[^`]*`|/\*\+|\*/|[A-Za-z_$][\w$]*|[0-9]+(?:\.[0-9]+)?|<=|>=|<>|\|\||=>|\S")
CHARACTERS = "'`\"\\;$#@!&{}[]%|.,0eE-/*()<>=_ \n"
SYMBOLS = ("(", ")", ",", ".", "=", "<", ">", "*", "+", "-", "[", "]", ";", "'x'", "1", "x", "`x`", "=>", "||", "/")


def _lines(name: str) -> list[str]:
    lines = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def read_statements() -> list[str]:
    """Returns the statements of the corpus."""
    types = _lines("types.txt")
    return [
        *(line for name in FILES for line in _lines(name)),
        *(f"SELECT {line} FROM t" for line in _lines("expressions.txt")),
        *(f"CREATE TABLE t (c {line}, d INT)" for line in (*types, *_lines("column_types.txt"))),
        *(f"SELECT CAST(x AS {line}) FROM t" for line in types),
    ]


@cache
def _words() -> list[str]:
    return (CORPUS / "words.txt").read_text(encoding="utf-8").split()


def mutate(statement: str, drawn: random.Random) -> str:
    """Returns a statement with one or two of its tokens, or one of its characters, changed."""
    if drawn.random() < 0.1:
        place, character = drawn.randrange(len(statement)), drawn.choice(("", drawn.choice(CHARACTERS)))
        return statement[:place] + character + statement[place + drawn.randrange(2) :]
    tokens = TOKEN.findall(statement)
    for _ in range(drawn.choice((1, 1, 1, 2))):
        if tokens:
            _change(tokens, drawn)
    return " ".join(tokens)


def _change(tokens: list[str], drawn: random.Random) -> None:
    place = drawn.randrange(len(tokens))
    names = [index for index, token in enumerate(tokens) if re.fullmatch(r"[a-z_]+", token)]
    kind = drawn.choice(("drop", "drop", "double", "swap", "name", "name", "insert", "replace", "cut", "parenthesis"))
    if kind == "drop":
        del tokens[place]
    elif kind == "double":
        tokens.insert(place, tokens[place])
    elif kind == "swap" and place + 1 < len(tokens):
        tokens[place], tokens[place + 1] = tokens[place + 1], tokens[place]
    elif kind == "name" and names:
        tokens[drawn.choice(names)] = drawn.choice(_words())
    elif kind == "insert":
        tokens.insert(place, drawn.choice((*_words(), *SYMBOLS, *SYMBOLS)))
    elif kind == "replace":
        tokens[place] = drawn.choice((*_words(), *SYMBOLS, *SYMBOLS))
    elif kind == "cut":
        del tokens[place:]
    else:
        brackets = [index for index, token in enumerate(tokens) if token in "()[]"]
        if brackets:
            del tokens[drawn.choice(brackets)]


COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
ARITHMETIC = ("+", "-", "*", "/", "%", "||")
TESTS = ("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "IS JSON OBJECT")
ATOMS = (
    "a",
    "b",
    "t.c",
    "1",
    "2.5",
    "'x'",
    "NULL",
    "f(a, b)",
    "CAST(a AS INT)",
    "ARRAY[1, a]",
    "d[1]",
    "- a",
    "(a, b)",
)


def draw_expression(drawn: random.Random, depth: int = 0) -> str:
    """Returns a random condition with few parentheses, so that its tree depends on precedence."""
    kind = drawn.random()
    if depth < 3 and kind < 0.45:
        operator = drawn.choice(("AND", "OR"))
        return f"{draw_expression(drawn, depth + 1)} {operator} {draw_expression(drawn, depth + 1)}"
    if depth < 3 and kind < 0.55:
        return f"NOT {draw_expression(drawn, depth + 1)}"
    if depth < 3 and kind < 0.6:
        return f"({draw_expression(drawn, depth + 1)})"
    value = _draw_value(drawn, depth)
    negation = drawn.choice(("", "NOT "))
    if kind < 0.7:
        return f"{value} {negation}BETWEEN {_draw_value(drawn, depth)} AND {_draw_value(drawn, depth)}"
    if kind < 0.78:
        return f"{value} {negation}{drawn.choice(('LIKE', 'SIMILAR TO'))} {_draw_value(drawn, depth)}"
    if kind < 0.85:
        return f"{value} {negation}IN (1, {draw_expression(drawn, 3)})"
    comparison = f"{value} {drawn.choice(COMPARISONS)} {_draw_value(drawn, depth)}"
    return f"{comparison} {drawn.choice(TESTS)}" if drawn.random() < 0.3 else comparison


def _draw_value(drawn: random.Random, depth: int) -> str:
    if drawn.random() < 0.4 or depth > 4:
        return drawn.choice(ATOMS)
    return f"{_draw_value(drawn, depth + 1)} {drawn.choice(ARITHMETIC)} {_draw_value(drawn, depth + 1)}"
