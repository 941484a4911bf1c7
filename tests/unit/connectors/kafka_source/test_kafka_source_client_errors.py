"""Errors of the client library, as errors a user can do something about."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.client_errors import (
    BrokerUnavailableError,
    KafkaAuthorizationError,
    KafkaClientError,
    OffsetOutOfRangeError,
    UnknownTopicError,
    client_error,
    create_client,
    is_transient,
)

client = pytest.importorskip("confluent_kafka")
KafkaError = client.KafkaError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("_ALL_BROKERS_DOWN", BrokerUnavailableError),
        ("_TRANSPORT", BrokerUnavailableError),
        ("_TIMED_OUT", BrokerUnavailableError),
        ("UNKNOWN_TOPIC_OR_PART", UnknownTopicError),
        ("_UNKNOWN_PARTITION", UnknownTopicError),
        ("TOPIC_AUTHORIZATION_FAILED", KafkaAuthorizationError),
        ("GROUP_AUTHORIZATION_FAILED", KafkaAuthorizationError),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", KafkaAuthorizationError),
        ("_AUTHENTICATION", KafkaAuthorizationError),
        ("OFFSET_OUT_OF_RANGE", OffsetOutOfRangeError),
        ("_AUTO_OFFSET_RESET", OffsetOutOfRangeError),
        ("_BAD_MSG", KafkaClientError),
    ],
)
def test_an_error_says_what_where_and_what_to_do(code, kind):
    error = KafkaError(getattr(KafkaError, code))
    described = client_error(error, "read", servers="a:1,b:1", topic="orders", partition=3)

    assert type(described) is kind
    assert described.code == error.name()
    assert (described.topic, described.partition) == ("orders", 3)
    assert "read" in described.message
    assert kind is KafkaClientError or described.hint
    assert str(pickle.loads(pickle.dumps(described))) == str(described)


def test_an_exception_is_as_good_as_its_error():
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert client_error(client.KafkaException(error), "read").code == "UNKNOWN_TOPIC_OR_PART"


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        ("_ALL_BROKERS_DOWN", True),
        ("NOT_LEADER_FOR_PARTITION", True),
        ("COORDINATOR_LOAD_IN_PROGRESS", True),
        ("TOPIC_AUTHORIZATION_FAILED", False),
        ("UNKNOWN_TOPIC_OR_PART", False),
        ("OFFSET_OUT_OF_RANGE", False),
        ("_FATAL", False),
    ],
)
def test_what_passes_by_itself(code, passes):
    assert is_transient(KafkaError(getattr(KafkaError, code))) is passes


@pytest.mark.parametrize(
    "properties", [{"no.such.property": "1"}, {"session.timeout.ms": "long"}, {"group.id": "g", "error_cb": 7}, {}]
)
def test_properties_the_client_does_not_take(properties):
    with pytest.raises(InvalidProgramError, match="properties"):
        create_client("Consumer", properties)
