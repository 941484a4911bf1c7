"""Results on standard output: tables, figures as text, JSON."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

from firesteel.config.redaction import printable

__all__ = [
    "bytes_text",
    "count",
    "fitted_table",
    "indented",
    "local_time",
    "print_json",
    "print_result",
    "table",
    "time_text",
]


def print_result(value: Any, text: str, *, as_json: bool) -> None:
    """Prints a result as JSON if requested, else as text."""
    if as_json:
        print_json(value)
    else:
        print(text)  # noqa: T201


def print_json(value: Any) -> None:
    import msgspec

    print(json.dumps(msgspec.to_builtins(value), indent=2))  # noqa: T201


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> list[str]:
    """The lines of a table; columns named in ``right`` are aligned to the right, for figures.

    >>> print("\\n".join(table(["state", "keys"], [["sum", 3], ["seen", 12]], right=["keys"])))
    state  keys
    sum       3
    seen     12
    """
    cells = [[str(header) for header in headers], *([_cell(value) for value in row] for row in rows)]
    to_right = {index for index, header in enumerate(headers) if header in set(right)}
    widths = [max(len(row[index]) for row in cells) for index in range(len(headers))]
    lines = []
    for row in cells:
        aligned = (
            text.rjust(width) if index in to_right else text.ljust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(aligned).rstrip())
    return lines


def fitted_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, shrink: str, right: Iterable[str] = ()
) -> list[str]:
    """The lines of a table that is no wider than the terminal, where one column can be cut for that."""
    cells = [[_cell(value) for value in row] for row in rows]
    column = list(headers).index(shrink)
    if sys.stdout.isatty():
        others = sum(
            max(len(row[index]) for row in [list(headers), *cells]) + 2
            for index in range(len(headers))
            if index != column
        )
        room = max(12, shutil.get_terminal_size().columns - others)
        for row in cells:
            row[column] = row[column] if len(row[column]) <= room else f"{row[column][: room - 1]}…"
    return table(headers, cells, right=right)


def _cell(value: object) -> str:
    return "-" if value is None else printable(" ".join(str(value).splitlines()))


def indented(lines: Iterable[str], by: int = 2) -> list[str]:
    """The lines, moved to the right."""
    return [f"{' ' * by}{line}" if line else line for line in lines]


def bytes_text(size: int) -> str:
    """A size as people read it.

    >>> bytes_text(900), bytes_text(2_500_000)
    ('900 B', '2.4 MiB')
    """
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TiB"


def count(amount: int, noun: str, plural: str | None = None) -> str:
    """An amount with its noun.

    >>> count(1, "key"), count(1200, "key")
    ('1 key', '1,200 keys')
    """
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def time_text(timestamp: int) -> str:
    """Milliseconds since 1970 as a date and time in UTC."""
    return datetime.fromtimestamp(timestamp / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def local_time(timestamp: int) -> str:
    """Milliseconds since 1970 as this machine's date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp / 1000))
