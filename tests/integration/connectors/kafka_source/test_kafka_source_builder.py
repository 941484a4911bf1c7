"""What a Kafka source is built from, and what is refused when it is built."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from firesteel.common import SimpleStringSchema
from firesteel.common.errors import FiresteelWarning, InvalidProgramError
from firesteel.connectors.kafka.properties import check_properties, client_properties
from firesteel.connectors.kafka.source.properties import SourceProperties
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from firesteel.spi.source import Boundedness

LATEST = KafkaOffsetsInitializer.latest()


def complete():
    return (
        KafkaSource.builder()
        .set_bootstrap_servers("localhost:9092")
        .set_topics("orders")
        .set_value_only_deserializer(SimpleStringSchema())
    )


def test_without_a_client_library_a_program_can_still_be_written():
    """Whoever only builds the program needs no Kafka client."""
    code = """
import sys
sys.modules["confluent_kafka"] = None
from firesteel.common import SimpleStringSchema
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream.connectors.kafka import KafkaSource
from firesteel.connectors.kafka.client_errors import kafka_client
source = KafkaSource.builder().set_bootstrap_servers("a:1").set_topics("t")
source.set_value_only_deserializer(SimpleStringSchema()).build()
try:
    kafka_client()
except InvalidProgramError as error:
    assert "firesteel[kafka]" in error.hint
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=180)


def test_a_source_travels_and_does_not_tell_its_properties():
    source = complete().set_property("sasl.password", "secret").set_bounded(LATEST).build()

    travelled = pickle.loads(pickle.dumps(source))

    assert repr(travelled) == "KafkaSource(topics orders at localhost:9092; from earliest to latest)"
    assert travelled.get_produced_type() == SimpleStringSchema().get_produced_type()


def test_boundedness():
    assert complete().build().get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert complete().set_unbounded(LATEST).build().get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert complete().set_bounded(LATEST).build().get_boundedness() is Boundedness.BOUNDED


@pytest.mark.parametrize(
    "build",
    [
        lambda: KafkaSource.builder().set_topics("t").set_value_only_deserializer(SimpleStringSchema()).build(),
        lambda: KafkaSource.builder().set_bootstrap_servers("a:1").set_topics("t").build(),
        lambda: (
            KafkaSource.builder().set_bootstrap_servers("a:1").set_value_only_deserializer(SimpleStringSchema()).build()
        ),
        lambda: complete().set_topic_pattern(".*"),
        lambda: complete().set_value_only_deserializer("utf-8"),
        lambda: complete().set_deserializer(SimpleStringSchema()),
        lambda: complete().set_starting_offsets("earliest"),
        lambda: complete().set_bounded(KafkaOffsetsInitializer),
        lambda: complete().set_bad_records("drop"),
        lambda: complete().set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build(),
        lambda: complete().set_property("commit.offsets.on.checkpoint", "true").build(),
        lambda: complete().set_property("enable.auto.commit", True).build(),
        lambda: complete().set_property("commit.offsets.on.checkpoint", "yes").build(),
        lambda: complete().set_property("partition.discovery.interval.ms", "5 min").build(),
        lambda: complete().set_property("fetch.min.bytes", None).build(),
        lambda: KafkaSource.builder().set_topics(),
        lambda: KafkaSource.builder().set_topics(["a", "b"]),
        lambda: KafkaSource.builder().set_topic_pattern("("),
        lambda: KafkaSource.builder().set_partitions(set()),
        lambda: KafkaSource.builder().set_partitions({("orders", 0)}),
        lambda: KafkaTopicPartition("orders", -1),
        lambda: KafkaTopicPartition("", 0),
        lambda: KafkaOffsetsInitializer.timestamp(-1),
        lambda: KafkaOffsetsInitializer.offsets({("orders", 0): 1}),  # type: ignore[dict-item]
        lambda: KafkaOffsetsInitializer.offsets({KafkaTopicPartition("orders", 0): -1}),
        lambda: KafkaOffsetsInitializer.committed_offsets("earliest"),
    ],
)
def test_what_is_refused(build):
    with pytest.raises(InvalidProgramError):
        build()


# -- properties -------------------------------------------------------------------------------------


def properties(given=(), reset=KafkaOffsetResetStrategy.EARLIEST, stops=False):
    return SourceProperties({"bootstrap.servers": "a:1", **dict(given)}, reset, stops=stops)


def test_what_the_consumers_get():
    given = {
        "group.id": "billing",
        "fetch.max.wait.ms": 50,
        "request.timeout.ms": "7000",
        "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        "auto.offset.reset": "earliest",
        "partition.discovery.interval.ms": "1000",
    }
    client = properties(given, KafkaOffsetResetStrategy.NONE).for_reader(3)

    assert client["fetch.wait.max.ms"] == "50"
    assert client["socket.timeout.ms"] == "7000"
    assert client["auto.offset.reset"] == "error", "the initializer says that"
    assert client["client.id"] == "billing-3"
    assert client["isolation.level"] == "read_uncommitted"
    assert client["enable.auto.commit"] == "false"
    assert not {"key.deserializer", "partition.discovery.interval.ms", "fetch.max.wait.ms"} & client.keys()


def test_isolation_and_automatic_commits_are_the_users():
    given = {"group.id": "g", "isolation.level": "read_committed", "enable.auto.commit": True}
    client = properties(given).for_reader(0)

    assert client["isolation.level"] == "read_committed"
    assert client["enable.auto.commit"] == "true"
    assert "enable.auto.offset.store" not in client


def test_offsets_are_committed_for_a_group_unless_nobody_wants_it():
    assert properties({"group.id": "g"}).commits_on_checkpoint
    assert not properties().commits_on_checkpoint
    assert not properties({"group.id": "g", "commit.offsets.on.checkpoint": "false"}).commits_on_checkpoint


def test_how_often_new_partitions_are_looked_for():
    assert properties().discovery_interval_ms == 300_000
    assert properties({"partition.discovery.interval.ms": 0}).discovery_interval_ms is None
    assert properties(stops=True).discovery_interval_ms is None
    assert properties({"partition.discovery.interval.ms": 7}, stops=True).discovery_interval_ms == 7


@pytest.mark.parametrize(
    "key",
    ["sasl.jaas.config", "ssl.truststore.location", "interceptor.classes", "partitioner.class"],
)
def test_java_properties_without_a_counterpart_are_refused_with_what_to_do(key):
    with pytest.raises(InvalidProgramError, match=key) as caught:
        check_properties({key: "x"})
    assert caught.value.hint


JAAS = "org.apache.kafka.common.security.{} required {};"


@pytest.mark.parametrize(
    ("config", "password"),
    [
        (JAAS.format("plain.PlainLoginModule", 'username="me" password="a; b=c"'), "a; b=c"),
        (JAAS.format("plain.PlainLoginModule", r'password="say \"\\\"" username="me"'), 'say "\\"'),
        (JAAS.format("scram.ScramLoginModule", "\n  username='me'\n  password=secret\n") + "\n", "secret"),
    ],
)
def test_user_and_password_are_taken_from_a_jaas_config(config, password):
    assert check_properties({"sasl.jaas.config": config}) == {"sasl.username": "me", "sasl.password": password}


@pytest.mark.parametrize(
    "config",
    [
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;",
        JAAS.format("scram.ScramLoginModule", 'username="me" password="secret" tokenauth="true"'),
        JAAS.format("plain.PlainLoginModule", 'username="me"'),
        JAAS.format("plain.PlainLoginModule", 'username="me" password="secret" !'),
    ],
)
def test_another_jaas_config_is_refused_without_showing_it(config):
    with pytest.raises(InvalidProgramError, match=r"sasl\.jaas\.config") as caught:
        check_properties({"sasl.jaas.config": config})
    assert "sasl.username" in caught.value.hint
    assert "secret" not in str(caught.value)


def test_a_java_keystore_is_refused():
    assert check_properties({"ssl.keystore.type": "PKCS12"})
    with pytest.raises(InvalidProgramError):
        check_properties({"ssl.keystore.type": "JKS"})


def test_java_properties_without_effect_are_told():
    with pytest.warns(FiresteelWarning, match=r"max\.poll\.records"):
        checked = check_properties({"max.poll.records": "500", "acks": "all"})
    assert client_properties(checked, "producer") == {"acks": "all"}


def test_producers_get_their_names_too():
    checked = check_properties({"buffer.memory": 1_048_576, "request.timeout.ms": 5, "max.request.size": 7})
    assert client_properties(checked, "producer") == {
        "queue.buffering.max.kbytes": "1024",
        "request.timeout.ms": "5",
        "message.max.bytes": "7",
    }


def test_functions_are_kept_for_callbacks_only():
    assert check_properties({"oauth_cb": print}) == {"oauth_cb": print}
    with pytest.raises(InvalidProgramError):
        check_properties({"sasl.username": print})


def test_a_misspelt_property_is_refused_with_the_nearest():
    with pytest.raises(InvalidProgramError, match=r"'isolation.levell' is not a property[^?]*'isolation.level'\?"):
        complete().set_property("isolation.levell", "read_committed").build()


def test_a_value_that_a_property_does_not_accept_is_refused():
    with pytest.raises(InvalidProgramError, match=r"fetch\.min\.bytes"):
        complete().set_property("fetch.min.bytes", "some").build()
