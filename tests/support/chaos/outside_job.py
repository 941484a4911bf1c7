"""The job of the chaos runs with Kafka and PostgreSQL: from a topic through state of each key to a topic and a table.

Record i has key ``i % KEYS`` and is in partition ``key % PARTITIONS``, so the records of a key come in order and the
result of record i is known: how many records its key had up to it. Run as a program it is the driver.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from firesteel.common import Configuration, Row, SimpleStringSchema, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.connectors.postgres import PostgresSink
from firesteel.datastream.state import ValueState, ValueStateDescriptor

__all__ = ["INPUT", "KEYS", "OUTPUT", "PARTITIONS", "TABLE", "result_of"]

INPUT, OUTPUT, TABLE = "chaos-input", "chaos-output", "chaos_output"
KEYS = 1000
PARTITIONS = 4
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


def result_of(number: int) -> int:
    """What record ``number`` gives."""
    return number // KEYS + 1


class Count(KeyedProcessFunction):
    """Counts the records of a key; fails if there is an order to."""

    def __init__(self, orders: str) -> None:
        self._orders = Path(orders)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count: ValueState = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        (self._orders / f"slot-{os.getpid()}").touch()
        self._left = 0

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        self._left -= 1
        if self._left < 0:
            self._left = 1000
            try:
                (self._orders / "raise").unlink()
            except FileNotFoundError:
                pass
            else:
                raise RuntimeError("told to fail")
        yield value, count


def build(env: StreamExecutionEnvironment, kafka: str, postgres: str, orders: str) -> None:
    """The program."""
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka)
        .set_topics(INPUT)
        .set_group_id("chaos")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(OUTPUT)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    to_kafka = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("chaos")
        .set_property("transaction.timeout.ms", "600000")
        .set_record_serializer(serializer)
        .build()
    )
    to_postgres = (
        PostgresSink.builder()
        .set_url(postgres)
        .set_table(TABLE)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .build()
    )
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "input").uid("input").map(int, Types.LONG())
    counts = numbers.key_by(lambda number: number % KEYS, Types.LONG()).process(Count(orders), PAIR).uid("count")
    counts.map(lambda pair: f"{pair[0]},{pair[1]}", Types.STRING()).sink_to(to_kafka).uid("kafka")
    counts.map(lambda pair: Row(*pair)).sink_to(to_postgres).uid("postgres")


def main() -> None:
    """Runs the job until it is killed."""
    request = json.loads(sys.argv[1])
    configuration = Configuration()
    for key, value in request["configuration"].items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.configure(configuration)
    build(env, request["kafka"], request["postgres"], request["orders"])
    env.execute("chaos outside")


if __name__ == "__main__":
    main()
