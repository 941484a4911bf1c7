"""From Kafka through a keyed sum to Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.runner import Run
from benchmarks.scenarios.job import PAIR, KeyedSum
from benchmarks.scenarios.kafka_peer import KafkaStage, measure, to_pair
from benchmarks.scenarios.kafka_stage import INPUT, OUTPUT
from benchmarks.systems.firesteel import FiresteelJob, _environment
from firesteel.common import SimpleStringSchema, Types, WatermarkStrategy
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """Every record in gives a record out: the key, and the sum of its values."""
    params = run.params
    with KafkaStage() as stage:
        if params["scene"] == "load":
            stage("fill", records=params["records"])
        options = {
            "execution.checkpointing.interval": params["interval"],
            "execution.checkpointing.dir": str(Path(run.scratch, "checkpoints")),
            **params.get("options", {}),
        }
        env = _environment(run, **options)
        _build(env, stage("servers"), DeliveryGuarantee(params["guarantee"]), latency=params["scene"] == "latency")
        job = FiresteelJob(env)
        try:
            return measure(run, stage, warmup_s=params["warmup_s"])
        finally:
            job.stop()


def _build(env: Any, servers: str, guarantee: DeliveryGuarantee, *, latency: bool) -> None:
    offsets = KafkaOffsetsInitializer.latest() if latency else KafkaOffsetsInitializer.earliest()
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(INPUT)
        .set_group_id("firesteel")
        .set_starting_offsets(offsets)
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(OUTPUT)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix("firesteel")
        .set_record_serializer(serializer)
        .build()
    )
    pairs = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").map(to_pair, PAIR)
    keyed = pairs.key_by(lambda pair: pair[0], Types.LONG())
    # for the latency the value is the time at which the record was made: it goes through as it is
    sums = keyed.map(lambda pair: pair, PAIR) if latency else keyed.process(KeyedSum(), PAIR)
    sums.map(lambda pair: f"{pair[0]},{pair[1]}", Types.STRING()).sink_to(sink)
