"""What a Kafka sink is told, and what it refuses before anything is started."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common import SimpleStringSchema
from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.sink.producer import producer_properties
from firesteel.connectors.kafka.sink.wire_properties import wire_arguments
from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from firesteel.spi.sink import DeliveryGuarantee

NONE, AT_LEAST_ONCE, EXACTLY_ONCE = (
    DeliveryGuarantee.NONE,
    DeliveryGuarantee.AT_LEAST_ONCE,
    DeliveryGuarantee.EXACTLY_ONCE,
)


def serializer():
    return (
        KafkaRecordSerializationSchema.builder()
        .set_topic("out")
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )


def builder(guarantee=None):
    begun = KafkaSink.builder().set_bootstrap_servers("host:9092").set_record_serializer(serializer())
    return begun if guarantee is None else begun.set_delivery_guarantee(guarantee)


def test_without_more_the_guarantee_is_none_as_in_flink():
    sink = builder().build()
    assert sink.get_delivery_guarantee() is NONE
    assert sink.create_committer() is None
    assert not sink.needs_checkpoints()
    assert repr(sink) == "KafkaSink(out at host:9092, none)"


def test_a_sink_can_be_sent_to_another_process():
    sink = builder(EXACTLY_ONCE).set_transactional_id_prefix("p").set_property("linger.ms", "7").build()
    assert repr(pickle.loads(pickle.dumps(sink))) == repr(sink)
    assert sink.needs_checkpoints()


@pytest.mark.parametrize(
    ("incomplete", "what"),
    [
        (KafkaSink.builder().set_record_serializer(serializer()), "bootstrap servers"),
        (KafkaSink.builder().set_bootstrap_servers("host:9092"), "record serializer"),
        (builder(EXACTLY_ONCE), "transactional id prefix"),
    ],
)
def test_what_is_missing_is_said(incomplete, what):
    with pytest.raises(InvalidProgramError, match=what) as caught:
        incomplete.build()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("properties", "guarantee", "what"),
    [
        ({"acks": "0"}, AT_LEAST_ONCE, "acks=0"),
        ({"acks": "1"}, EXACTLY_ONCE, "acks=1"),
        ({"enable.idempotence": "false"}, EXACTLY_ONCE, "enable.idempotence"),
        ({"transaction.timeout.ms": "10"}, EXACTLY_ONCE, "transaction.timeout.ms"),
        ({"transaction.timeout.ms": "long"}, EXACTLY_ONCE, "transaction.timeout.ms"),
        ({"transactional.id": "mine"}, EXACTLY_ONCE, "transactional.id"),
        ({"delivery.report.only.error": "false"}, NONE, "delivery.report.only.error"),
        ({"ssl.ca.pem": "…"}, EXACTLY_ONCE, "ssl.ca.pem"),
        ({"sasl.kerberos.keytab": "file"}, EXACTLY_ONCE, "sasl.kerberos.keytab"),
        ({"enable.ssl.certificate.verification": "false"}, EXACTLY_ONCE, "enable.ssl.certificate.verification"),
        ({"sasl.oauthbearer.method": "oidc"}, EXACTLY_ONCE, "sasl.oauthbearer.method"),
    ],
)
def test_properties_that_contradict_the_guarantee_are_refused(properties, guarantee, what):
    begun = builder(guarantee).set_transactional_id_prefix("p").set_properties(properties)
    with pytest.raises(InvalidProgramError, match=what.replace(".", r"\.")):
        begun.build()


@pytest.mark.parametrize("properties", [{"ssl.ca.pem": "…"}, {"sasl.kerberos.keytab": "file"}])
def test_what_only_the_second_client_cannot_do_is_no_matter_without_it(properties):
    assert builder(AT_LEAST_ONCE).set_properties(properties).build()


@pytest.mark.parametrize("prefix", ["", None, "x" * 32_001])
def test_prefixes_that_kafka_cannot_take_are_refused(prefix):
    with pytest.raises(InvalidProgramError, match="prefix"):
        builder().set_transactional_id_prefix(prefix)


def test_wrong_types_are_refused_at_once():
    with pytest.raises(TypeError, match="DeliveryGuarantee"):
        builder().set_delivery_guarantee("exactly-once")
    with pytest.raises(TypeError, match="KafkaRecordSerializationSchema"):
        builder().set_record_serializer(SimpleStringSchema())


def test_defaults_and_the_users_own():
    base = {"bootstrap.servers": "host:9092"}
    own = {**base, "linger.ms": "100", "partitioner": "random", "delivery.timeout.ms": "9000"}

    plain = producer_properties(base, AT_LEAST_ONCE)
    assert (plain["linger.ms"], plain["partitioner"]) == (5, "murmur2_random")
    assert (plain["enable.idempotence"], plain["delivery.timeout.ms"]) == ("true", 120_000)
    assert "transaction.timeout.ms" not in plain
    assert own.items() <= producer_properties(own, EXACTLY_ONCE).items()
    assert producer_properties(base, EXACTLY_ONCE)["transaction.timeout.ms"] == 15 * 60 * 1000


@pytest.mark.parametrize(
    ("name", "other"), [("queue.buffering.max.ms", "linger.ms"), ("message.timeout.ms", "delivery.timeout.ms")]
)
def test_a_default_does_not_come_beside_the_other_name_of_the_same_property(name, other):
    properties = producer_properties({"bootstrap.servers": "host:9092", name: "7"}, AT_LEAST_ONCE)
    assert properties[name] == "7"
    assert other not in properties


@pytest.mark.parametrize(
    "weaker", [{"acks": "1"}, {"retries": "0"}, {"max.in.flight.requests.per.connection": "100"}], ids=str
)
def test_no_idempotence_where_the_users_properties_exclude_it(weaker):
    assert "enable.idempotence" not in producer_properties({"bootstrap.servers": "h:1", **weaker}, AT_LEAST_ONCE)


def test_records_wait_no_longer_than_their_transaction():
    properties = producer_properties({"bootstrap.servers": "h:1", "transaction.timeout.ms": "5000"}, EXACTLY_ONCE)
    assert properties["delivery.timeout.ms"] == 5000


def test_security_properties_for_the_second_client():
    def token(config):
        return f"token of {config}", 0.0

    arguments = wire_arguments(
        {
            "bootstrap.servers": "a:1, b:2",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "scram-sha-512",
            "sasl.username": "me",
            "sasl.password": "secret",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "me.pem",
            "ssl.key.location": "me.key",
            "ssl.key.password": "key",
            "ssl.endpoint.identification.algorithm": "none",
            "enable.ssl.certificate.verification": "true",
            "linger.ms": "5",
            "oauth_cb": token,
            "sasl.oauthbearer.config": "scope=x",
        }
    )
    provider = arguments.pop("sasl_oauth_token_provider")
    assert provider.token() == "token of scope=x"
    assert arguments == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
        "ssl_cafile": "ca.pem",
        "ssl_certfile": "me.pem",
        "ssl_keyfile": "me.key",
        "ssl_password": "key",
        "ssl_check_hostname": False,
    }
