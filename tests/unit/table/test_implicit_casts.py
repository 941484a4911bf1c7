"""Which types of queries can be written to which columns: what was recorded from Flink 2.3."""

from __future__ import annotations

import json
from pathlib import Path

from firesteel.table.casts.implicit import supports_implicit_cast
from firesteel.table.parser import parse_type
from firesteel.table.parser.types import to_logical_type
from firesteel.types.logical import DayTimeIntervalType, YearMonthIntervalType

RECORDED = json.loads((Path(__file__).parent / "recorded" / "implicit_casts.json").read_text("utf-8"))
"""Targets with the types that Flink casts to them; other columns of this table of types it refuses."""


def test_all_pairs() -> None:
    types = {name: to_logical_type(parse_type(name)) for name in RECORDED}
    types |= {"INTERVAL MONTH": YearMonthIntervalType(), "INTERVAL SECOND(3)": DayTimeIntervalType()}
    wrong = [
        (source, target)
        for target, sources in RECORDED.items()
        for source in types
        if supports_implicit_cast(types[source], types[target]) != (source in sources)
    ]
    assert not wrong
