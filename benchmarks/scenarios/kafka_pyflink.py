"""From Kafka through a keyed sum to Kafka, with PyFlink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyflink.common import SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)

from benchmarks.runner import Run
from benchmarks.scenarios.kafka_peer import KafkaStage, measure, to_pair
from benchmarks.systems.pyflink import PAIR, THROUGHPUT, KeyedSum, PyFlinkJob, _environment

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """The same program, with Flink's own connectors in the JVM."""
    params = run.params
    with KafkaStage() as stage:
        if params["scene"] == "load":
            stage("fill", records=params["records"])
        jars = ";".join(Path(jar).as_uri() for jar in stage("jars", connector="flink"))
        options = {
            "pipeline.jars": jars,
            "execution.checkpointing.interval": params["interval"],
            "execution.checkpointing.dir": Path(run.scratch, "checkpoints").as_uri(),
            **(THROUGHPUT if run.system == "pyflink-process" else {}),
        }
        env = _environment(run, **options)
        servers = stage("servers")
        source = (
            KafkaSource.builder()
            .set_bootstrap_servers(servers)
            .set_topics("input")
            .set_group_id("pyflink")
            .set_starting_offsets(KafkaOffsetsInitializer.earliest())
            .set_value_only_deserializer(SimpleStringSchema())
            .build()
        )
        serializer = (
            KafkaRecordSerializationSchema.builder()
            .set_topic("output")
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers(servers)
            .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .set_transactional_id_prefix("pyflink")
            .set_property("transaction.timeout.ms", "900000")
            .set_record_serializer(serializer)
            .build()
        )
        pairs = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").map(to_pair, PAIR)
        sums = pairs.key_by(lambda pair: pair[0], Types.LONG()).process(KeyedSum(run.board), PAIR)
        sums.map(lambda pair: f"{pair[0]},{pair[1]}", Types.STRING()).sink_to(sink)
        job = PyFlinkJob(env, run.board)
        try:
            return measure(run, stage, warmup_s=params["warmup_s"])
        finally:
            job.stop()
