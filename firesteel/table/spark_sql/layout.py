"""Spark SQL over several lines, to be read: clauses begin lines, and queries in parentheses are indented."""

from __future__ import annotations

import re

__all__ = ["laid_out"]

_TOKENS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|\(SELECT\b|[()]"
    r"| (?:FROM|WHERE|GROUP BY|ORDER BY|LIMIT|OFFSET|LATERAL VIEW"
    r"|(?:INNER|LEFT|RIGHT|FULL|LEFT SEMI|LEFT ANTI) JOIN|(?:UNION|INTERSECT|EXCEPT) (?:ALL|DISTINCT))\b"
)
"""Texts and names, parentheses, and the words with which clauses begin."""


def laid_out(sql: str) -> str:
    """The same query; only spaces differ.

    >>> print(laid_out("SELECT `a` AS `b` FROM (SELECT `a` FROM t WHERE (`a` > 1)) AS q1 WHERE `a` IN (' FROM ')"))
    SELECT `a` AS `b`
    FROM (
      SELECT `a`
      FROM t
      WHERE (`a` > 1)
    ) AS q1
    WHERE `a` IN (' FROM ')
    """
    parts: list[str] = []
    queries: list[bool] = []  # for each open parenthesis whether it has a query
    end = 0
    for token in _TOKENS.finditer(sql):
        parts.append(sql[end : token.start()])
        end = token.end()
        text = token.group()
        depth = sum(queries)
        if text == "(SELECT":
            queries.append(True)
            text = f"(\n{'  ' * (depth + 1)}SELECT"
        elif text == "(":
            queries.append(False)
        elif text == ")":
            text = f"\n{'  ' * (depth - 1)})" if queries.pop() else text
        elif text.startswith(" ") and (not queries or queries[-1]):
            text = f"\n{'  ' * depth}{text[1:]}"
        parts.append(text)
    return "".join([*parts, sql[end:]])
