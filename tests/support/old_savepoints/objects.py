"""Objects that checkpoints have of connectors which the programs of `programs` do not use.

Their pickles are in tests/golden/savepoints/objects.json, each written once by the version that was then the newest.
Sources are among them: a checkpoint keeps one that a HybridSource made when its turn came.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from firesteel.common import SimpleStringSchema, Types
from firesteel.connectors.base.split_reader import AskAgain
from firesteel.connectors.client.socket_source import SocketSplit
from firesteel.connectors.files.discovery import FileDiscoveryState
from firesteel.connectors.files.s3_part_file import InProgressUpload, PendingUpload
from firesteel.connectors.hybrid.enumerator import HybridSourceEnumeratorState
from firesteel.connectors.kafka.sink.abandoned_transactions import SinkIdentity
from firesteel.connectors.kafka.sink.serialization import KafkaProducerRecord
from firesteel.connectors.kafka.sink.transactions import PreparedTransaction
from firesteel.connectors.kafka.source.deserialization import ConsumerRecord
from firesteel.connectors.kafka.source.enumerator import KafkaEnumeratorState
from firesteel.connectors.kafka.source.split import KafkaPartitionSplit
from firesteel.connectors.postgres.cdc.capture_check import ServerIds
from firesteel.connectors.postgres.cdc.capture_setup import PreparedCapture
from firesteel.connectors.postgres.cdc.captured_table import CapturedColumn, CapturedTable, KeyColumn, KeyOrder
from firesteel.connectors.postgres.cdc.enumerator import CdcEnumeratorState
from firesteel.connectors.postgres.cdc.split import ChunkPart, ChunkSplit, LogPosition, LogSplit
from firesteel.connectors.postgres.cdc.transaction_snapshot import TransactionSnapshot
from firesteel.connectors.postgres.sink.staging import Stage
from firesteel.connectors.postgres.source.splits import KeyType, PostgresSplit
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import BadRecords, FileSource, FileSourceSplit, StreamFormat
from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource, KafkaTopicPartition
from firesteel.datastream.connectors.nexmark import Auction, Bid, NexmarkSource, Person
from firesteel.datastream.connectors.postgres import (
    ChangeRecord,
    PostgresCdcSource,
    PostgresConnectionOptions,
    PostgresSource,
    RowDebeziumDeserializationSchema,
    StartupOptions,
)
from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema
from firesteel.datastream.formats.json import JsonRowDeserializationSchema
from firesteel.datastream.window import TriggerResult
from firesteel.filesystem.s3_uploads import UploadedPart
from firesteel.formats.bad_records import BadRecord
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind, StopMode
from firesteel.runtime.model.elements import CheckpointBarrier, EndOfPartition, WatermarkStatus
from firesteel.runtime.operators.held_records import HeldItem, Records, SplitEnd, SplitWatermark
from firesteel.spark.dataframes.row_files import RowFileSplit

__all__ = ["OBJECTS"]

FILE = FileSourceSplit("0:/data/a.csv:0", "/data/a.csv", 0, 100, 40, 2, "v1")
PARTITION = KafkaPartitionSplit("orders", 3, 120, 200)
SNAPSHOT = TransactionSnapshot(10, 20, frozenset({14}), 171)
TABLE = CapturedTable(
    "shop",
    "public",
    "orders",
    (CapturedColumn("id", 23, 23, "int4"), CapturedColumn("name", 25, 25, "text")),
    (KeyColumn("id", 0, "int4", KeyOrder.NATIVE),),
    oid=16_400,
)
PARTS = (ChunkPart((1,), (50,), SNAPSHOT),)
CHUNK = ChunkSplit("public.orders:0", TABLE, (50,), (100,), 1_790_000_000_000, PARTS)
UPLOADED = (UploadedPart(1, "etag", 5_242_880),)
CONNECTION = PostgresConnectionOptions("postgresql://localhost/shop", "firesteel", "secret")
ROW_TYPE = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])


def _kafka(offsets: KafkaOffsetsInitializer) -> Any:
    return KafkaSource.builder().set_bootstrap_servers("localhost:9092").set_starting_offsets(offsets)


def _csv() -> CsvSchema:
    return CsvSchema.builder().add_number_column("id").add_string_column("name").build()


OBJECTS: dict[str, Callable[[], Any]] = {
    # in flight, and held by sources
    "barrier": lambda: CheckpointBarrier(
        3, 5, CheckpointOptions(SnapshotKind.SAVEPOINT, CheckpointLocation("/a", "/b"), stop=StopMode.SUSPEND)
    ),
    "events": lambda: [WatermarkStatus(True), EndOfPartition()],
    "held records": lambda: [
        HeldItem(Records("0", [1, 2], [3, 4]), 0, False),
        HeldItem(SplitWatermark("1", 7), 1, True),
        HeldItem(SplitEnd("2"), 1, True),
    ],
    # records of users
    "records": lambda: [
        ConsumerRecord("orders", 0, 5, 7, b"key", b"value", [("header", b"x")]),
        KafkaProducerRecord("orders", b"value", b"key", [("header", b"x")], 7, 0),
        BadRecord(b"raw", "orders", "orders-0", 7, "not JSON"),
        ChangeRecord("shop", "public", "orders", ("id", "name"), "u", (1, "a"), (1, "b"), 5, 171, 14),
        Person(1, "Ada", "a@b", "1234", "Paris", "FR", 5, ""),
        Auction(1, "pen", "a pen", 1, 2, 3, 4, 5, 6, ""),
        Bid(1, 2, 3, "Google", "https://a", 4, ""),
        TriggerResult.FIRE_AND_PURGE,
    ],
    # splits and states of enumerators
    "file discovery": lambda: FileDiscoveryState([FILE, AskAgain("search 1")], {"/data": frozenset({"a.csv"})}),  # type: ignore[list-item]
    "socket": SocketSplit,
    "row file": lambda: RowFileSplit("0", "/data/rows", 40, 2),
    "kafka split": lambda: PARTITION,
    "kafka enumerator": lambda: KafkaEnumeratorState(
        frozenset({KafkaTopicPartition("orders", 0)}), (PARTITION,), initial_discovery_finished=True
    ),
    "postgres split": lambda: PostgresSplit(
        "0", ("id",), 1, 100, includes_upper=True, parameters=("a",), position=(7,), key_types=(KeyType("int4"),)
    ),
    "cdc splits": lambda: [
        CHUNK,
        LogSplit(LogPosition(171, 180, 2), (TABLE,), {"public.orders": PARTS}),
    ],
    "cdc enumerator": lambda: CdcEnumeratorState(
        PreparedCapture((TABLE,), 171, 5, ServerIds("UTF8", "7", 16_401, {16_400: frozenset({"table"})})),
        [TABLE],
        [CHUNK],
        {"public.orders:0"},
        {"public.orders": list(PARTS)},
    ),
    # committables and states of writers
    "kafka sink": lambda: [SinkIdentity("prefix", "sink"), PreparedTransaction("prefix-0", 4000, 1, 5, "digest")],
    "postgres sink": lambda: Stage(("staging",), ("public", "orders"), ("id", "name"), (uuid.UUID(int=5),), 12),
    "s3 sink": lambda: [
        PendingUpload("s3://bucket/a", "upload", UPLOADED, 5_242_880, "sink"),
        InProgressUpload("bucket", "s3://bucket/b", "upload", UPLOADED, b"tail", 5, 2),
    ],
    # sources that a HybridSource made
    "made kafka source": lambda: HybridSourceEnumeratorState(
        1,
        _kafka(KafkaOffsetsInitializer.timestamp(5))
        .set_topics("orders")
        .set_group_id("billing")
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(ROW_TYPE).build())
        .set_property("security.protocol", "SSL")
        .build(),
        None,
    ),
    "made kafka source of a pattern": lambda: (
        _kafka(KafkaOffsetsInitializer.committed_offsets())
        .set_topic_pattern("orders-.*")
        .set_group_id("billing")
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .set_bad_records(BadRecords.drop())
        .build()
    ),
    "made kafka source of partitions": lambda: (
        _kafka(KafkaOffsetsInitializer.offsets({KafkaTopicPartition("orders", 0): 5}))
        .set_partitions({KafkaTopicPartition("orders", 0)})
        .set_unbounded(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    ),
    "made postgres source": lambda: (
        PostgresSource.builder()
        .set_connection_options(CONNECTION)
        .set_table("public.orders")
        .set_partition_column("id", partitions=8)
        .build()
    ),
    "made cdc source": lambda: (
        PostgresCdcSource.builder()
        .hostname("localhost")
        .database("shop")
        .username("firesteel")
        .password("secret")
        .table_list("public.orders")
        .slot_name("orders")
        .startup_options(StartupOptions.initial())
        .deserializer(RowDebeziumDeserializationSchema())
        .build()
    ),
    "made file source": lambda: FileSource.for_record_stream_format(
        CsvReaderFormat.for_schema(_csv()), "/proc/self/cwd"
    ).build(),
    "made source of text": lambda: FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), "/proc/self/cwd"
    ).build(),
    "made generators": lambda: [
        DataGeneratorSource(str, 5, RateLimiterStrategy.per_second(10), Types.STRING()),
        NexmarkSource(5, 10),
    ],
}
"""Makes each object as this version has it."""
