"""The connector ``nexmark``: the same events as the row generator, and only what a query reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from firesteel.connectors.generators.nexmark import Auction, Bid, NexmarkConfig, NexmarkGenerator, Person
from firesteel.table.binder.calls import call
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Case, FieldAccess, InputRef, Literal
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.connectors.nexmark.columns import ROW_TYPE
from firesteel.table.connectors.nexmark.source import NexmarkTableSource
from firesteel.table.plan.nodes import LogicalNode, TableScan, walk
from firesteel.table.plan.streaming import Calc, WatermarkAssigner
from firesteel.table.rules.references import references
from firesteel.types.logical import IntType, RowField, RowType, TimestampKind, TimestampType, VarCharType
from tests.support.table_queries import plan_of, run_query, sink_of, source_of

OPTIONS = {"connector": "nexmark", "events.num": "600", "tps": "1000", "seed": "5"}
KINDS = (Person, Auction, Bid)


def nexmark(**options: str) -> NexmarkTableSource:
    source = source_of(ROW_TYPE, {**OPTIONS, **{name.replace("__", "."): text for name, text in options.items()}})
    assert isinstance(source, NexmarkTableSource)
    return source


def generated(count: int, config: NexmarkConfig) -> list:
    generator = NexmarkGenerator(config)
    return [generator.map(index) for index in range(count)]


def plain(value):
    return int(value.replace(tzinfo=timezone.utc).timestamp() * 1000) if isinstance(value, datetime) else value


@pytest.mark.parametrize(("group", "has_many_channels"), [(1, True), (10, False)])
def test_the_events_of_the_row_generator(group, has_many_channels):
    source = nexmark(**{"out-of-order__group-size": str(group), "auction__proportion": "7"})
    source = replace(source, config=replace(source.config, has_many_channels=has_many_channels))
    rows = run_query("SELECT event_type, person, auction, bid FROM t", {"t": source}, parallelism=1)
    expected = generated(600, source.config)
    assert [KINDS[row[0]](*map(plain, row[1 + row[0]])) for row in rows] == expected
    assert all(row[1 + kind] is None for row in rows for kind in range(3) if kind != row[0])


def test_subtasks_share_the_events():
    source = nexmark()
    rows = run_query("SELECT bid.price FROM t WHERE event_type = 2", {"t": source}, parallelism=3)
    expected = [event.price for event in generated(600, source.config) if isinstance(event, Bid)]
    assert sorted(row[0] for row in rows) == sorted(expected)


def with_watermarks(source: NexmarkTableSource) -> LogicalNode:
    """The table as NEXMark declares it: event time is that of the record that is there."""
    identifier = ObjectIdentifier("default_catalog", "default_database", "t")
    scan = TableScan(identifier, ROW_TYPE, source=source)
    kind, *records = references(scan)
    times = []
    for record in records:
        index = record.type.field_names.index("dateTime")  # type: ignore[attr-defined]
        times.append(FieldAccess(record.type.children()[index], record, index))
    conditions = tuple(call("EQUALS", [kind, Literal(IntType(nullable=False), number)]) for number in (0, 1))
    rowtime = Case(times[0].type, conditions, (times[0], times[1]), times[2])
    names = (*ROW_TYPE.field_names, "dateTime")
    calc = Calc(scan, (kind, *records, rowtime), names)
    attribute = RowField("dateTime", TimestampType(3, TimestampKind.ROWTIME))
    row_type = RowType([*ROW_TYPE.fields, attribute], nullable=False)
    return WatermarkAssigner(calc, row_type, 4, InputRef(TimestampType(3), 4, "dateTime"))


def test_only_what_is_read_is_generated():
    table = with_watermarks(nexmark())
    sql = "SELECT bid.auction, bid.price, `dateTime` FROM t WHERE event_type = 2 AND bid.price > 1000"
    plan = plan_of(sql, {"t": table})
    (source,) = [node.source for node in walk(plan) if isinstance(node, TableScan)]
    assert source.paths == (("bid", "auction"), ("bid", "price"), ("bid", "dateTime"))
    assert source.kinds == {2}
    rows = run_query(sql, {"t": table}, parallelism=1)
    expected = [
        (event.auction, event.price, event.date_time)
        for event in generated(600, nexmark().config)
        if isinstance(event, Bid) and event.price > 1000
    ]
    assert [(auction, price, plain(time)) for auction, price, time in rows] == expected


def test_a_row_that_is_read_as_a_whole_and_by_field():
    rows = run_query("SELECT auction.id, auction FROM t WHERE event_type IN (1, 0)", {"t": nexmark()}, parallelism=1)
    assert len(rows) == 600 * 4 // 50
    assert [row[0] for row in rows] == [None if row[1] is None else row[1][0] for row in rows]
    assert sum(row[1] is None for row in rows) == 12


def test_a_condition_over_computed_columns_stays():
    sql = "SELECT bid.price FROM t WHERE event_type + bid.price > 10000000 AND event_type <> 0"
    source = nexmark()
    rows = run_query(sql, {"t": source}, parallelism=1)
    expected = [event.price for event in generated(600, source.config) if isinstance(event, Bid)]
    assert [row[0] for row in rows] == [price for price in expected if price + 2 > 10_000_000]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events.num": "many"}, "Could not parse value 'many' for key 'events.num'"),
        ({"event.num": "5"}, "Unsupported options:\n\nevent.num"),
        ({"first-event.rate": "5"}, "a rate that changes"),
        ({"person.proportion": "0"}, "there must be persons and auctions"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValidationError, match=message):
        source_of(ROW_TYPE, {**OPTIONS, **options})


def test_wrong_columns():
    with pytest.raises(ValidationError, match="has no column `event_type` STRING"):
        source_of({"event_type": VarCharType()}, OPTIONS)
    with pytest.raises(ValidationError, match="only be used as a source"):
        sink_of(ROW_TYPE, OPTIONS)
