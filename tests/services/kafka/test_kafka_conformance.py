"""The Kafka source and sink through the conformance suite, against a real broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer
from firesteel.spi.sink import DeliveryGuarantee, Sink
from firesteel.spi.source import Source
from firesteel.testing.conformance import KillPoint, SinkConformance, SourceConformance
from tests.support.services.kafka_sink_jobs import fresh_prefix, messages, sink_builder
from tests.support.services.kafka_topics import builder, fresh_topic, produce, values

LATEST = KafkaOffsetsInitializer.latest()
PATIENCE_S = 120.0
"""What hangs is to end; how quick the machine is, is not of interest."""


class TestBoundedKafkaSource(SourceConformance):
    """Three partitions, up to what is there at the start."""

    kills = 3
    timeout_s = call_timeout_s = left_timeout_s = PATIENCE_S

    @pytest.fixture(autouse=True)
    def _topic(self, kafka: Any) -> None:
        self.broker = kafka
        self.topic = fresh_topic(kafka, 3)
        produce(kafka, self.topic, values(60), partitions=3)

    def create_source(self) -> Source[Any]:
        return builder(self.broker, self.topic).set_bounded(LATEST).build()

    def create_empty_source(self) -> Source[Any]:
        return builder(self.broker, fresh_topic(self.broker, 2)).set_bounded(LATEST).build()

    def expected_records(self) -> Sequence[str]:
        return values(60)


class TestUnboundedKafkaSource(TestBoundedKafkaSource):
    def create_source(self) -> Source[Any]:
        return builder(self.broker, self.topic).build()

    def create_empty_source(self) -> Source[Any]:
        return builder(self.broker, fresh_topic(self.broker, 2)).build()

    def add_records(self) -> Sequence[str]:
        produce(self.broker, self.topic, ["late 1", "late 2"], partitions=3)
        return ["late 1", "late 2"]


class TestExactlyOnceKafkaSink(SinkConformance):
    """At fewer places than there are: a producer takes a moment to begin with. The sink's own tests have the others."""

    guarantee = DeliveryGuarantee.EXACTLY_ONCE
    parallelisms = (1, 2)
    timeout_s = call_timeout_s = left_timeout_s = settle_s = PATIENCE_S
    kill_points = (KillPoint.COMPLETE, KillPoint.HALF_COMMITTED, KillPoint.WRITING_ON)

    @pytest.fixture(autouse=True)
    def _topic(self, kafka: Any) -> None:
        self.broker = kafka
        self.topic = fresh_topic(kafka, 2)
        self.prefix = fresh_prefix()

    def create_sink(self) -> Sink:
        return sink_builder(self.broker, self.topic, self.guarantee).set_transactional_id_prefix(self.prefix).build()

    def create_other_sink(self) -> Sink:
        builder = sink_builder(self.broker, self.topic, self.guarantee)
        return builder.set_transactional_id_prefix(fresh_prefix()).build()

    def visible_records(self) -> Sequence[str]:
        return [message.value().decode() for message in messages(self.broker, self.topic)]


class AtLeastOnceKafkaSink(TestExactlyOnceKafkaSink):
    guarantee = DeliveryGuarantee.AT_LEAST_ONCE


def test_at_least_once_kafka_sink(kafka: Any) -> None:
    suite = AtLeastOnceKafkaSink()
    suite.broker, suite.topic, suite.prefix = kafka, fresh_topic(kafka, 2), fresh_prefix()
    suite.run("test_all_is_visible_at_the_end", "test_job_that_fails_and_restarts").raise_if_failed()
