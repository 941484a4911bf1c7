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
    is_refusal,
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


ALERT = "error:0A000412:SSL routines::ssl/tls alert bad certificate"


@pytest.mark.parametrize(
    ("code", "text", "at_first", "later"),
    [
        ("_AUTHENTICATION", "SASL authentication error: Invalid username or password", True, True),
        ("_AUTHENTICATION", "SASL handshake failed: Local: Broker transport failure", False, False),
        ("_SSL", f"SSL handshake failed: {ALERT}", True, False),
        ("_TRANSPORT", f"Receive failed: {ALERT}", True, False),
        ("_SSL", "SSL handshake failed: Connection reset by peer", False, False),
        ("_TRANSPORT", "Connection refused", False, False),
    ],
)
def test_who_is_not_let_in(code, text, at_first, later):
    error = KafkaError(getattr(KafkaError, code), text)

    assert is_refusal(error, is_first_contact=True) is at_first
    assert is_refusal(error, is_first_contact=False) is later
    assert not at_first or type(client_error(error, "write")) is KafkaAuthorizationError


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidProgramError, match=r"no ssl\.ca\.location \(.*/ca\.pem\)"):
        create_client("Producer", {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")})


@pytest.mark.parametrize(
    "properties", [{"no.such.property": "1"}, {"session.timeout.ms": "long"}, {"group.id": "g", "error_cb": 7}, {}]
)
def test_properties_the_client_does_not_take(properties):
    with pytest.raises(InvalidProgramError, match="properties"):
        create_client("Consumer", properties)
