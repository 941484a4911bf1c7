"""Runs the corpus, mutations of it and random expressions with Flink's parser, and records what it says.

``python -m tests.support.sql_oracle.record`` writes the file that the unit tests read. It needs Maven and Java 17.
``--seed 100 --check`` tries other mutations and expressions and writes nothing. Statements on which the parsers differ
are printed; those without a reason in ``disagreements.py`` make the command fail.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from firesteel.table.parser import SqlParserException, parse_query, parse_statement
from tests.support.sql_oracle.corpus import draw_expression, mutate, read_statements
from tests.support.sql_oracle.disagreements import reason_of
from tests.support.sql_oracle.oracle import build_oracle, run_flink
from tests.support.sql_oracle.trees import normalize, tree_text

__all__ = ["RECORDED", "is_accepted", "read_recorded", "tree_of"]

RECORDED = Path(__file__).parent / "recorded_verdicts.jsonl.xz"


def read_recorded() -> list[dict[str, Any]]:
    """Returns the recorded statements: ``kind``, ``sql``, ``accepted``, and ``tree`` for expressions."""
    with lzma.open(RECORDED, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def is_accepted(sql: str) -> bool:
    """Whether Firesteel's parser accepts a statement."""
    try:
        parse_statement(sql)
    except SqlParserException:
        return False
    return True


def tree_of(expression: str) -> str:
    """The tree that Firesteel's parser makes of an expression, in the form of the recorded ones."""
    return tree_text(parse_query(f"SELECT {expression} FROM t").expressions[0])


def draw_rows(seed: int, mutations: int, expressions: int) -> list[dict[str, Any]]:
    """Returns the corpus, mutations of it and expressions, without verdicts."""
    drawn = random.Random(seed)
    statements = read_statements()
    mutated = sorted({mutate(drawn.choice(statements), drawn) for _ in range(mutations)} - set(statements))
    trees = sorted({draw_expression(drawn) for _ in range(expressions)})
    return [
        *({"kind": "corpus", "sql": sql} for sql in statements),
        *({"kind": "mutation", "sql": sql} for sql in mutated),
        *({"kind": "expression", "sql": sql} for sql in trees),
    ]


def add_verdicts(rows: list[dict[str, Any]], directory: Path) -> None:
    """Adds what Flink's parser says to the rows."""
    texts = [f"SELECT {row['sql']} FROM t" if row["kind"] == "expression" else row["sql"] for row in rows]
    for row, verdict in zip(rows, run_flink(texts, directory), strict=True):
        row["accepted"] = verdict.accepted
        if row["kind"] == "expression":
            row["tree"] = normalize(verdict.text)


def find_differences(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of which Firesteel's parser says something else."""
    return [
        row
        for row in rows
        if (tree_of(row["sql"]) != row["tree"] if "tree" in row else is_accepted(row["sql"]) != row["accepted"])
    ]


def main() -> int:
    """Records statements, or only checks them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=8_000)
    parser.add_argument("--expressions", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    rows = draw_rows(options.seed, options.mutations, options.expressions)
    with tempfile.TemporaryDirectory() as directory:
        build_oracle(Path(directory))
        add_verdicts(rows, Path(directory))
    different = find_differences(rows)
    unknown = [row for row in different if "tree" in row or reason_of(row["sql"]) is None]
    for row in different:
        print(json.dumps({**row, "reason": reason_of(row["sql"])}))
    print(f"{len(rows)} statements, {len(different)} differ, {len(unknown)} of them without a reason")
    if not options.check:
        with lzma.open(RECORDED, "wt", encoding="utf-8", preset=9) as file:
            file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
