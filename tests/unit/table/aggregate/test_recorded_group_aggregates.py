"""Group aggregates on columns have the results that Flink 2.3 gives, for all aggregate functions.

The results are those of scripts/record_flink_aggregates.py. Rows come in one batch, in several, one by one, and through
the local and global phase. Where Firesteel differs, ``DIFFERENCES`` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.common.types import RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.parser import SqlParserException
from firesteel.table.plan.nodes import Aggregate, Project, walk
from firesteel.table.runtime.operators.aggregate.group_aggregate import GlobalGroupAggregateSpec, GroupAggregateSpec
from firesteel.table.runtime.operators.aggregate.local_aggregate import LocalGroupAggregateSpec
from firesteel.types.internal import from_column
from tests.support.aggregate_model import RunningOperator
from tests.support.sql_expressions import from_recorded, same
from tests.unit.table import test_recorded_aggregates as aggregates
from tests.unit.table.test_recorded_aggregates import Recorded, close, further, inputs, plan, recorded

DIFFERENCES = {
    sql: reason
    for sql, reason in aggregates.DIFFERENCES.items()
    # these are as in Flink here
    if sql not in ("SUM(q)", "AVG(q)", "MIN(f)", "MIN(d)", "COLLECT(ai)")
}
DIFFERENCES |= {
    f"{call.format('CAST(ts AS TIMESTAMP(9))')}": "Platform: a column of nanoseconds holds the years 1677 to 2262"
    for call in ("LAST_VALUE({})", "MAX({})", "COUNT(DISTINCT {})")
}
VARIANCES = ("STDDEV", "VAR")
WAYS = ("batch", "parts", "rows", "phases")


def _batches(aggregate: Aggregate, changes: Sequence[tuple[Any, bool]], size: int) -> list[ColumnBatch]:
    assert isinstance(aggregate.input, Project)
    project = compile_row(aggregate.input.expressions, Session())
    rows = [project(row) for row, _ in changes]
    kinds = [RowKind.INSERT if comes else RowKind.DELETE for _, comes in changes]
    type_ = aggregate.input.row_type
    starts = range(0, len(rows), size)
    return [batch_of(rows[at : at + size], type_, kinds[at : at + size]) for at in starts]


def _results(node: Project, way: str, changes: Sequence[tuple[Any, bool]]) -> dict[Any, Any] | None:
    """The results by group; None if the call has no such way."""
    aggregate = next(part for part in walk(node) if isinstance(part, Aggregate))
    retracts = not all(comes for _, comes in changes)
    arguments = (aggregate.input.row_type, aggregate.grouping, aggregate.calls)
    spec = GroupAggregateSpec(*arguments, consumes_retractions=retracts, per_row=way == "rows")
    batches = _batches(aggregate, changes, 7 if way in ("parts", "phases") else len(changes))
    if way == "phases":
        if not spec.create_handler().is_splittable:
            return None
        local = RunningOperator(LocalGroupAggregateSpec(*arguments, retracts))
        for batch in batches:
            local.operator.process_columns(batch)
        batches = list(local.batches)
        spec = GlobalGroupAggregateSpec(*arguments, consumes_retractions=retracts)
    running = RunningOperator(spec)
    for batch in batches:
        running.operator.process_columns(batch)
    finish = compile_row(node.expressions, Session())
    found: dict[Any, Any] = {}
    for batch in running.batches:
        fields = aggregate.row_type.fields
        columns = [from_column(column, part.type) for column, part in zip(batch.data.columns, fields, strict=True)]
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        for kind, row in zip(kinds, zip(*columns, strict=True), strict=True):
            if kind == RowKind.DELETE.value:
                del found[row[0]]
            elif kind != RowKind.UPDATE_BEFORE.value:
                found[row[0]] = finish(row)[1]
    return found


def problem(entry: Recorded) -> str | None:
    """What is not as in Flink; None if all is."""
    try:
        node = plan(entry.sql)
    except (ValidationError, SqlParserException):
        return None  # test_recorded_aggregates compares what is refused
    if entry.type is None:
        return None
    assert isinstance(node, Project)
    type_ = node.row_type.fields[1].type
    _, rows, deleted = inputs()
    come = [(row, True) for row in rows]
    leave = [(rows[index], False) for index in deleted]
    batch, stream, retracted, emptied = entry.results
    plain = stream if isinstance(stream, list) else batch
    for expected, changes in ((plain, come), (retracted, come + leave), (emptied, come + leave + further())):
        if isinstance(expected, str):
            continue
        wanted = {key: from_recorded(value, type_) for key, value in expected}
        # changes of one batch that cancel out leave a distinct value where it was
        ways = ("rows",) if len(changes) > len(come + leave) and "DISTINCT" in entry.sql else WAYS
        for way in ways:
            found = _results(node, way, changes)
            if found is None:
                continue
            agree = close if entry.sql.startswith(VARIANCES) else same
            if found.keys() != wanted.keys() or not agree([found[key] for key in wanted], list(wanted.values())):
                return f"{way} {'with' if changes is not come else 'without'} deletions: {found} instead of {wanted}"
    return None


def problem_or_overflow(entry: Recorded) -> str | None:
    try:
        return problem(entry)
    except EvaluationError as error:
        return str(error)


@pytest.mark.parametrize("function_name", sorted({sql.split("(")[0] for sql in recorded()}))
def test_groups_have_the_results_of_flink(function_name: str) -> None:
    entries = [entry for entry in recorded().values() if entry.sql.split("(")[0] == function_name]
    found = {entry.sql: text for entry in entries if (text := problem_or_overflow(entry)) is not None}
    new = {sql: text for sql, text in found.items() if sql not in DIFFERENCES}
    assert not new, "\n".join(f"{sql}: {text}" for sql, text in new.items())
    known = {entry.sql for entry in entries} & DIFFERENCES.keys()
    assert known <= found.keys(), f"no longer different: {known - found.keys()}"
