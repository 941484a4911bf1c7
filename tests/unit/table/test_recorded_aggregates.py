"""Aggregate functions have the types and results that Flink 2.3 gives them, also when rows leave and parts are merged.

scripts/record_flink_aggregates.py records them. Where Firesteel differs, ``DIFFERENCES`` says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pytest

from firesteel.table.binder.queries import QueryBinder
from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, InputRef
from firesteel.table.bound.session import Session
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.functions.aggregates import AggregateBody
from firesteel.table.functions.aggregates.body import bag_key
from firesteel.table.functions.registry import function
from firesteel.table.parser import SqlParserException, parse_query
from firesteel.table.plan.nodes import Aggregate, AggregateCall, LogicalNode, Project, TableScan, walk
from firesteel.types import logical as t
from tests.support.sql_expressions import HERE, from_json, from_recorded, logical_type, same

_ZERO = "Flink merges 0.0 and -0.0 if rows may leave"
_NAN = "Without retractions the first NaN stays in Flink"
_OVERFLOW = "Flink begins a sum anew after an overflow of 38 digits"
_EMPTY = "Flink returns -1 for a NULL of a type that is NOT NULL"
_BYTES = "Flink does not find bytes that leave"
DIFFERENCES: dict[str, str] = {
    "COLLECT(d)": "A multiset is a dict, which takes 0.0 and -0.0 for one key",
    "COLLECT(byt)": "Flink compares the identity of bytes",
    "COLLECT(ai)": "A multiset is a dict, whose keys cannot be lists",
    "SUM(q)": _OVERFLOW,
    "AVG(q)": _OVERFLOW,
    **dict.fromkeys(["MIN(f)", "MIN(d)"], _NAN),
    **dict.fromkeys(["ARRAY_AGG(byt)", "FIRST_VALUE(byt)", "LAST_VALUE(byt)"], _BYTES),
    **dict.fromkeys(
        [f"{name}(n)" for name in ("STDDEV_POP", "VAR_POP", "STDDEV_SAMP", "VAR_SAMP", "VARIANCE")], _EMPTY
    ),
    **dict.fromkeys([f"{name}(DISTINCT d)" for name in ("STDDEV_SAMP", "VAR_SAMP", "VARIANCE")], _ZERO),
}
VARIANCES = ("STDDEV", "VAR")


class Change(NamedTuple):
    """A row that comes or leaves."""

    row: tuple[Any, ...]
    comes: bool = True


class Recorded(NamedTuple):
    """What Flink said of a call: a message, or results by group in batch, as a stream, and with deletions."""

    sql: str
    type: str | None
    results: Sequence[Any]


@lru_cache(maxsize=1)
def inputs() -> tuple[t.RowType, list[tuple[Any, ...]], list[int]]:
    read = json.loads((HERE / "recorded" / "aggregate_inputs.json").read_text())
    names = [name for name, _ in read["columns"]]
    types = [logical_type(text) for _, text in read["columns"]]
    rows = [
        tuple(from_json(row[name], type_) for name, type_ in zip(names, types, strict=True)) for row in read["rows"]
    ]
    return t.RowType.of(names, types), rows, read["deleted"]


def further() -> list[Change]:
    """What comes after the deletions: groups are left with one row, or with NULL only, or begin anew."""
    read = json.loads((HERE / "recorded" / "aggregate_inputs.json").read_text())
    return [Change(inputs()[1][index], operation == "c") for operation, index in read["emptied"]]


@lru_cache(maxsize=1)
def recorded() -> dict[str, Recorded]:
    read = json.loads((HERE / "recorded" / "aggregates.json").read_text())
    return {entry[0]: Recorded(entry[0], entry[1], entry[2:]) for entry in read}


def plan(call: str) -> LogicalNode:
    def resolve(path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
        return TableScan(ObjectIdentifier("default_catalog", "default_database", path[-1]), inputs()[0], options)

    sql = f"SELECT g, {call} AS x FROM a GROUP BY g"
    return QueryBinder(resolve, sql).bind(parse_query(sql))


class Group:
    """The accumulators of one key for the calls of an aggregation."""

    def __init__(self, bodies: Sequence[AggregateBody], calls: Sequence[AggregateCall], types: Sequence[Any]) -> None:
        self._parts = list(zip(bodies, calls, strict=True))
        self._types = types
        self.accumulators = [body.create() for body in bodies]
        self._seen: list[dict[Any, int]] = [{} for _ in bodies]

    def change(self, row: tuple[Any, ...], comes: bool) -> None:
        for index, (body, call) in enumerate(self._parts):
            arguments = [row[column] for column in call.arguments]
            if call.filter is not None and not row[call.filter]:
                continue
            if None in arguments and not body.takes_null:
                continue
            if call.distinct and not self._is_edge(index, arguments, comes):
                continue
            if comes:
                body.accumulate(self.accumulators[index], *arguments)
            else:
                assert body.retract is not None
                body.retract(self.accumulators[index], *arguments)

    def _is_edge(self, index: int, arguments: list[Any], comes: bool) -> bool:
        """Whether the first equal row comes, or the last leaves."""
        call = self._parts[index][1]
        value = arguments[0]
        key = None if value is None else (bag_key(self._types[call.arguments[0]])(value),)
        seen = self._seen[index]
        seen[key] = seen.get(key, 0) + (1 if comes else -1)
        return seen[key] == (1 if comes else 0)

    def merge(self, other: Group) -> None:
        for (body, _), mine, theirs in zip(self._parts, self.accumulators, other.accumulators, strict=True):
            body.merge(mine, theirs)

    def results(self) -> list[Any]:
        return [body.result(accumulator) for (body, _), accumulator in zip(self._parts, self.accumulators, strict=True)]


def run(node: LogicalNode, changes: Iterable[Change], parts: int = 1) -> dict[Any, Any]:
    """The results by group; the changes are dealt out to some accumulators, which are merged."""
    session = Session()
    aggregate = next(part for part in walk(node) if isinstance(part, Aggregate))
    assert isinstance(aggregate.input, Project)
    fields = aggregate.input.row_type.fields
    bodies = []
    for call in aggregate.calls:
        arguments = tuple(InputRef(fields[index].type, index, fields[index].name) for index in call.arguments)
        body = function(call.function).row_body(Call(call.type, call.function, arguments, call.symbols), session)
        assert isinstance(body, AggregateBody)
        bodies.append(body)
    project = compile_row(aggregate.input.expressions, session)
    types = [field.type for field in fields]
    groups: dict[Any, list[Group]] = {}
    changes = list(changes)
    for number, (row, comes) in enumerate(changes):
        values = project(row)
        found = groups.setdefault(values[0], [Group(bodies, aggregate.calls, types) for _ in range(parts)])
        found[number * parts // len(changes)].change(values, comes)
    assert isinstance(node, Project)
    finish = compile_row(node.expressions, session)
    results = {}
    for key, found in groups.items():
        for other in found[1:]:
            found[0].merge(other)
        results[key] = finish((key, *found[0].results()))[1]
    return results


def outcome(node: LogicalNode, changes: Iterable[Change], parts: int = 1) -> Any:
    try:
        return run(node, changes, parts)
    except EvaluationError as error:
        return str(error)


def problem(entry: Recorded) -> str | None:
    """What is not as in Flink; None if all is."""
    refused = entry.type is None or all(isinstance(result, str) and "Exception" in result for result in entry.results)
    try:
        node = plan(entry.sql)
    except (ValidationError, SqlParserException) as error:
        return None if refused else f"rejected: {error}"
    type_ = node.row_type.fields[1].type
    if entry.type is None:
        return "accepted"
    if type_.as_summary_string() != entry.type:
        return f"type {type_.as_summary_string()} instead of {entry.type}"
    _, rows, deleted = inputs()
    come = [Change(row) for row in rows]
    leave = [Change(rows[index], comes=False) for index in deleted]
    batch, stream, retracted, emptied = entry.results
    ordered = isinstance(stream, list)
    checks = {
        "stream": (stream if ordered else batch, come, 1),
        "retracted": (retracted, come + leave, 1),
        "emptied": (emptied, come + leave + further(), 1),
    }
    distinct = "DISTINCT" in entry.sql  # the values of each part are, not those of all
    if not distinct:
        checks["merged"] = (stream if ordered else batch, come, 3)
        checks["merged after deletions"] = (retracted, come + leave, 3)
        checks["merged after all"] = (emptied, come + leave + further(), 3)
    for name, (expected, changes, parts) in checks.items():
        if isinstance(expected, str):
            if "execution plan" in expected:
                continue  # the planner of streams refuses it
            found = outcome(node, changes, parts)
            if not isinstance(found, str):
                return f"{name}: {found} instead of {expected}"
            continue
        found = outcome(node, changes, parts)
        wanted = {key: from_recorded(value, type_) for key, value in expected}
        about = parts > 1 and entry.sql.startswith(VARIANCES)  # the last digits depend on the order
        agree = close if about else same
        if isinstance(found, str) or not agree([found.get(key) for key in wanted], list(wanted.values())):
            return f"{name}: {found} instead of {wanted}"
    return None


def close(left: Sequence[Any], right: Sequence[Any], relative: float = 1e-12) -> bool:
    if [value is None for value in left] != [value is None for value in right]:
        return False
    numbers = [[float(value) for value in values if value is not None] for values in (left, right)]
    return numbers[0] == pytest.approx(numbers[1], rel=relative, nan_ok=True)


@pytest.mark.parametrize("function_name", sorted({sql.split("(")[0] for sql in recorded()}))
def test_aggregates_have_the_types_and_results_of_flink(function_name: str) -> None:
    entries = [entry for entry in recorded().values() if entry.sql.split("(")[0] == function_name]
    found = {entry.sql: text for entry in entries if (text := problem(entry)) is not None}
    new = {sql: text for sql, text in found.items() if sql not in DIFFERENCES}
    assert not new, "\n".join(f"{sql}: {text}" for sql, text in new.items())
    known = {entry.sql for entry in entries} & DIFFERENCES.keys()
    assert known <= found.keys(), f"no longer different: {known - found.keys()}"
