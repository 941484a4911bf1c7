"""Tables in Kafka: rows that are written are read again, with keys and metadata."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from firesteel.common.types import RowKind
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.services.kafka_broker import KafkaBroker
from firesteel.types.logical import RowField, RowType
from tests.support.table_queries import run_query, sink_of, source_of, write_rows

TYPE = RowType.of(["id", "name"], [DataTypes.BIGINT(), DataTypes.STRING()], nullable=False)
ROWS = [(1, "a"), (2, None), (3, "c")]


def options(kafka: KafkaBroker, topic: str, **others: str) -> dict[str, str]:
    fixed = {"connector": "kafka", "topic": topic, "properties.bootstrap.servers": kafka.bootstrap_servers}
    return {**fixed, **others}


UPSERT = {"key.format": "json", "value.format": "json"}
BOUNDED = {"scan.startup.mode": "earliest-offset", "scan.bounded.mode": "latest-offset"}


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    name = f"table-{uuid4().hex[:8]}"
    kafka.create_topic(name, 2)
    return name


def test_rows_with_keys_and_metadata(kafka, topic):
    formats = {"key.format": "json", "key.fields": "id", "value.format": "json", "value.fields-include": "EXCEPT_KEY"}
    write_rows(sink_of(TYPE, options(kafka, topic, **formats)), TYPE, ROWS)
    source = source_of(TYPE, options(kafka, topic, **formats, **BOUNDED))
    assert source.is_bounded
    assert sorted(map(tuple, run_query("SELECT id, name FROM t", {"t": source}))) == ROWS
    assert sorted(row[0] or "" for row in run_query("SELECT name FROM t", {"t": source})) == ["", "a", "c"]
    produced = RowType(
        [*TYPE.fields, RowField("$topic", DataTypes.STRING()), RowField("$offset", DataTypes.BIGINT())], nullable=False
    )
    with_metadata = source.with_metadata(["topic", "offset"], produced)
    found = run_query("SELECT id, `$topic`, `$offset` FROM t WHERE id = 1", {"t": with_metadata})
    assert list(map(tuple, found)) == [(1, topic, 0)]


def test_metadata_that_is_written(kafka, topic):
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment._session.environment._executor = InProcessExecutor()
    environment.get_config().set_local_timezone("UTC")
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options(kafka, topic, format="json", **BOUNDED).items())
    columns = "id BIGINT, ts TIMESTAMP(3) METADATA FROM 'timestamp', headers MAP<STRING, BYTES> METADATA"
    environment.execute_sql(f"CREATE TABLE t ({columns}, `offset` BIGINT METADATA VIRTUAL) WITH ({given})")
    environment.execute_sql(
        "INSERT INTO t VALUES (1, TIMESTAMP '2020-01-01 00:00:12.345', MAP['h', x'01ff']), "
        "(2, TIMESTAMP '2020-01-02 00:00:00', CAST(NULL AS MAP<STRING, BYTES>))"
    ).wait()
    with environment.execute_sql("SELECT id, CAST(ts AS STRING), headers FROM t").collect() as rows:
        found = sorted((tuple(row) for row in rows), key=lambda row: row[0])
    assert found[0] == (1, "2020-01-01 00:00:12.345", {"h": b"\x01\xff"})
    assert found[1][:2] == (2, "2020-01-02 00:00:00.000")
    environment.execute_sql(f"CREATE TABLE other (id BIGINT, `partition` INT METADATA) WITH ({given})")
    with pytest.raises(ValidationError, match="Invalid metadata key 'partition' in column 'partition' of table"):
        environment.execute_sql("INSERT INTO other VALUES (1, 2)")


def test_upserts(kafka, topic):
    sink = sink_of(TYPE, {**options(kafka, topic, **UPSERT), "connector": "upsert-kafka"}, primary_key=["id"])
    kinds = [RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE]
    write_rows(sink, TYPE, [(1, "a"), (1, "b"), (1, "b")], kinds, (0,))
    write_rows(sink, TYPE, [(2, "x"), (2, "x"), (2, "y")], [RowKind.INSERT] * 3, (0,))
    bounded = {"scan.bounded.mode": "latest-offset", **UPSERT}
    upserts = source_of(TYPE, {**options(kafka, topic, **bounded), "connector": "upsert-kafka"}, primary_key=["id"])
    changes = [(str(row.get_row_kind()), *row) for row in run_query("SELECT * FROM t", {"t": upserts})]
    assert [change for change in changes if change[1] == 1] == [
        ("+I", 1, "a"),
        ("-U", 1, "a"),
        ("+U", 1, "b"),
        ("-D", 1, "b"),
    ]
    assert [change for change in changes if change[1] == 2] == [("+I", 2, "x"), ("-U", 2, "x"), ("+U", 2, "y")]
    raw = source_of(
        {"key": DataTypes.STRING(), "value": DataTypes.STRING()},
        options(
            kafka,
            topic,
            **{"key.format": "raw", "key.fields": "key", "value.format": "raw", "value.fields-include": "EXCEPT_KEY"},
            **BOUNDED,
        ),
    )
    found = [(json.loads(key), json.loads(value)) for key, value in run_query("SELECT * FROM t", {"t": raw})]
    assert sorted(found, key=lambda pair: pair[0]["id"]) == [
        ({"id": 1}, {"id": 1, "name": "a"}),
        ({"id": 1}, {"id": 1, "name": "b"}),
        ({"id": 2}, {"id": 2, "name": "x"}),
        ({"id": 2}, {"id": 2, "name": "x"}),
        ({"id": 2}, {"id": 2, "name": "y"}),
    ]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({}, "A format is missing"),
        ({"format": "json", "scan.startup.mode": "first"}, "Could not parse value 'first'"),
        ({"format": "json"}, "'properties.group.id' is required"),
        ({"format": "json", "key.fields": "id"}, "'key.format' is missing"),
        ({"format": "json", "key.format": "json", "key.fields": "no"}, "Could not find the field 'no'"),
        ({"format": "json", "topics": "x"}, "Unsupported options:\n\ntopics"),
        ({"format": "json", "csv.x": "x"}, "Unsupported options:\n\ncsv.x"),
    ],
)
def test_wrong_options(kafka, others, message):
    with pytest.raises(ValidationError, match=message):
        source_of(TYPE, options(kafka, "t", **others))


def test_wrong_keys(kafka):
    with pytest.raises(ValidationError, match="doesn't support defining PRIMARY KEY"):
        source_of(TYPE, options(kafka, "t", format="json", **BOUNDED), primary_key=["id"])
    with pytest.raises(ValidationError, match="require to define a PRIMARY KEY"):
        sink_of(
            TYPE, {**options(kafka, "t"), "connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
        )
    with pytest.raises(ValidationError, match="transactional-id-prefix must be specified"):
        sink_of(TYPE, options(kafka, "t", format="json", **{"sink.delivery-guarantee": "exactly-once"}))
