"""NEXMark's auctions over Kafka: writes events to a topic, then finds the hottest auctions, each result exactly once.

Without ``--bootstrap-servers`` it starts a Kafka broker of its own, for which Maven has to be installed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from firesteel.common import Configuration, Duration, Time, Types, WatermarkStrategy
from firesteel.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    BadRecords,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.connectors.nexmark import NexmarkConfig, NexmarkJsonSchema, NexmarkSource
from firesteel.datastream.formats.json import JsonDeserializationSchema, JsonSerializationSchema
from firesteel.datastream.window import TimeWindow, TumblingEventTimeWindows

EVENTS = 100_000
CONFIG = NexmarkConfig(events_per_second=1000, out_of_order_group_size=50, seed=7)


class Count(AggregateFunction):
    """Counts bids."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class WithWindow(ProcessWindowFunction):
    """Says which auction had how many bids, and when."""

    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterable[dict[str, int]]:
        window: TimeWindow = context.window()
        for bids in elements:
            yield {"auction": key, "bids": bids, "until": window.end}


def environment(directory: str) -> StreamExecutionEnvironment:
    settings = Configuration()
    settings.set_string("execution.checkpointing.interval", "1 s")
    settings.set_string("execution.checkpointing.dir", directory)
    settings.set_string("pipeline.required-delivery-guarantee", "exactly-once")
    return StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(2)


def sink(servers: str, topic: str, schema: Any) -> KafkaSink:
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(schema)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(serializer.build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"auctions-{topic}")
        .build()
    )


def source(servers: str, topic: str) -> KafkaSource:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_group_id("auctions")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(JsonDeserializationSchema())
        .set_bad_records(BadRecords.drop())
        .set_property("isolation.level", "read_committed")
        .build()
    )


def write_events(directory: str, servers: str, count: int) -> None:
    env = environment(directory).set_parallelism(1)
    events = env.from_source(NexmarkSource(count, config=CONFIG), WatermarkStrategy.no_watermarks(), "auction house")
    events.sink_to(sink(servers, "events", NexmarkJsonSchema())).uid("events")
    env.execute("write events")


def find_hot_auctions(directory: str, servers: str) -> None:
    env = environment(directory)
    # event time is that of the Kafka records, with a watermark for each partition
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    bids = env.from_source(source(servers, "events"), strategy, "events")
    (
        bids.filter(lambda event: event["event_type"] == 2)
        .map(lambda event: event["bid"])
        .key_by(lambda bid: bid["auction"], Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(Count(), window_function=WithWindow())
        .filter(lambda found: found["bids"] >= 100)
        .sink_to(sink(servers, "hot", JsonSerializationSchema()))
        .uid("hot")
    )
    env.execute("find hot auctions")


def show(directory: str, servers: str) -> None:
    env = environment(directory)
    hot = env.from_source(source(servers, "hot"), WatermarkStrategy.no_watermarks(), "hot")
    with hot.execute_and_collect() as results:
        found = sorted(results, key=lambda each: -each["bids"])
    print(f"{len(found)} times an auction had a hundred bids or more in ten seconds; the hottest:")
    for each in found[:5]:
        print(f"  auction {each['auction']}: {each['bids']} bids")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", help="of a Kafka with the topics 'events' and 'hot'")
    parser.add_argument("--events", type=int, default=EVENTS, help=f"how many ({EVENTS})")
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        servers = options.bootstrap_servers
        if servers is None:
            from firesteel.testing.services.kafka_broker import KafkaBroker

            broker = stack.enter_context(KafkaBroker())
            servers = broker.bootstrap_servers
            for topic in ("events", "hot"):
                broker.create_topic(topic, 4)
        write_events(directory, servers, options.events)
        find_hot_auctions(directory, servers)
        show(directory, servers)


if __name__ == "__main__":
    main()
