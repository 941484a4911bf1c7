"""Kafka client properties: translates Java's names to librdkafka's, and lists those without a counterpart."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from typing import Any, Literal

from firesteel.common.errors import FiresteelWarning, InvalidProgramError

__all__ = ["check_client", "check_properties", "client_properties", "to_bool", "to_int"]

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "max.request.size": "message.max.bytes",
}
_RENAMED_FOR_CONSUMER = {"request.timeout.ms": "socket.timeout.ms"}
_VALUES = {
    "auto.offset.reset": {"none": "error"},
    "ssl.endpoint.identification.algorithm": {"": "none"},
}
_DROPPED = frozenset(
    {
        # (de)serializers are the schemas; the rest is not used by a consumer with assigned partitions
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
        "default.api.timeout.ms",
        "partition.assignment.strategy",
        "exclude.internal.topics",
    }
)
_WITHOUT_EFFECT = frozenset(
    {
        "auto.include.jmx.reporter",
        "max.block.ms",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "ssl.enabled.protocols",
        "ssl.protocol",
    }
)
_PEM = (
    "librdkafka reads PEM files: ssl.ca.location, ssl.certificate.location, ssl.key.location, ssl.key.password. "
    "'keytool -list -rfc -keystore truststore.jks > ca.pem' writes what a trust store has."
)
_JAAS = "sasl.jaas.config"
_JAAS_LOGIN = re.compile(
    r"\s*org\.apache\.kafka\.common\.security\.(?:plain\.PlainLoginModule|scram\.ScramLoginModule)\s+required\s+(.*?);\s*",
    re.DOTALL,
)
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))\s*""", re.DOTALL)
_USUAL = (
    "acks",
    "auto.offset.reset",
    "batch.size",
    "bootstrap.servers",
    "client.id",
    "compression.type",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.idempotence",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "isolation.level",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "message.max.bytes",
    "partitioner",
    "request.timeout.ms",
    "retries",
    "sasl.mechanism",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "session.timeout.ms",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "transaction.timeout.ms",
)
"""Properties that programs set most, to suggest one for a name that does not exist."""
_LAST = "firesteel.last"
_NO_SUCH = re.compile(r'No such configuration property: "([^"]*)"')
_REFUSED = {
    "sasl.login.callback.handler.class": "Give a Python function: oauth_cb.",
    "sasl.client.callback.handler.class": "Give a Python function: oauth_cb.",
    "sasl.login.class": "librdkafka logs in by itself.",
    "interceptor.classes": "Java classes are not supported: use a map function instead.",
    "partitioner.class": "Java classes cannot be called: librdkafka's 'partitioner' names one of its own.",
    "ssl.engine.factory.class": _PEM,
    "ssl.truststore.location": _PEM,
    "ssl.truststore.password": _PEM,
    "ssl.truststore.type": _PEM,
    "ssl.truststore.certificates": "Use ssl.ca.pem, or a file: ssl.ca.location.",
    "ssl.keystore.certificate.chain": "Use ssl.certificate.pem, or a file: ssl.certificate.location.",
    "ssl.keystore.key": "Use ssl.key.pem, or a file: ssl.key.location.",
}


def check_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The properties with text for values, as in a file; functions are kept for names that end in ``_cb``."""
    checked: dict[str, Any] = {}
    for key, value in properties.items():
        if not isinstance(key, str) or not key.strip():
            raise InvalidProgramError(f"The name of a Kafka property is text, not {key!r}.")
        if key == _JAAS:
            checked.update(_log_in(value))
        elif callable(value) and key.endswith("_cb"):
            checked[key] = value
        elif isinstance(value, bool):
            checked[key] = "true" if value else "false"
        elif isinstance(value, (str, int, float)):
            checked[key] = str(value)
        else:
            raise InvalidProgramError(f"The Kafka property '{key}' is text or a number, not {value!r}.")
        if key in _WITHOUT_EFFECT:
            warnings.warn(f"The Kafka property '{key}' has no effect.", FiresteelWarning, stacklevel=3)
        if key in _REFUSED:
            raise InvalidProgramError(f"The Kafka property '{key}' has no counterpart here.", hint=_REFUSED[key])
    store = checked.get("ssl.keystore.type")
    if store is not None and store.upper() != "PKCS12":
        raise InvalidProgramError(f"The Kafka property 'ssl.keystore.type' is '{store}', not PKCS12.", hint=_PEM)
    return checked


def _log_in(jaas_config: Any) -> dict[str, str]:
    """User and password of a sasl.jaas.config for PLAIN or SCRAM, which librdkafka takes by themselves."""
    login = _JAAS_LOGIN.fullmatch(str(jaas_config))
    options: dict[str, str] = {}
    if login is not None and not _JAAS_OPTION.sub("", login[1]).strip():
        for name, *values in _JAAS_OPTION.findall(login[1]):
            options[name] = re.sub(r"\\(.)", r"\1", "".join(values))
    if options.keys() != {"username", "password"}:
        # without its value: that has a password in it
        raise InvalidProgramError(
            f"The Kafka property '{_JAAS}' is understood with PlainLoginModule or ScramLoginModule, a username and a "
            "password only.",
            hint="Set separate properties instead: sasl.username and sasl.password (PLAIN, SCRAM), "
            "sasl.kerberos.principal and sasl.kerberos.keytab (GSSAPI), sasl.oauthbearer.* (OAUTHBEARER).",
        )
    return {f"sasl.{name}": value for name, value in options.items()}


def client_properties(
    properties: Mapping[str, Any], role: Literal["consumer", "producer", "admin"], own: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Checked properties in librdkafka's form, without the connector's ``own`` and unused ones."""
    wanted: dict[str, Any] = {}
    for key, value in properties.items():
        if key in own or key in _DROPPED or key in _WITHOUT_EFFECT or key == "ssl.keystore.type":
            continue
        name = _RENAMED.get(key, key)
        if role != "producer":
            name = _RENAMED_FOR_CONSUMER.get(name, name)
        if name == "buffer.memory":
            name, value = "queue.buffering.max.kbytes", str(max(1, to_int(properties, key, 0) // 1024))
        wanted[name] = _VALUES.get(name, {}).get(value, value)
    return wanted


def check_client(client: Mapping[str, Any], role: Literal["consumer", "producer"]) -> None:
    """Raises an error for a property that librdkafka does not have, or whose value it does not accept.

    librdkafka sets one property after the other before it creates a client. The last one here does not exist, so that
    no client is created.
    """
    try:
        import confluent_kafka
    except ImportError:  # the program is built where it does not run; the client fails there
        return
    create = confluent_kafka.Consumer if role == "consumer" else confluent_kafka.Producer
    try:
        create({**client, _LAST: ""})
    except confluent_kafka.KafkaException as error:
        text = error.args[0].str()
        missing = _NO_SUCH.search(text)
        if missing is None:
            raise InvalidProgramError(f"A Kafka {role} cannot be made with these properties: {text}.") from None
        name = missing[1]
        if name == _LAST:
            return
        nearest = difflib.get_close_matches(name, {*_USUAL, *_RENAMED, *client} - {name}, 1)
        raise InvalidProgramError(
            f"'{name}' is not a property of a Kafka {role}.",
            hint=f"Did you mean '{nearest[0]}'?" if nearest else "librdkafka's CONFIGURATION.md lists all properties.",
        ) from None


def to_bool(properties: Mapping[str, Any], key: str, default: bool) -> bool:
    """A property that is true or false."""
    value = str(properties.get(key, default)).lower()
    if value not in ("true", "false"):
        raise InvalidProgramError(f"The Kafka property '{key}' is true or false, not '{properties[key]}'.")
    return value == "true"


def to_int(properties: Mapping[str, Any], key: str, default: int) -> int:
    """A property that is a whole number."""
    value = properties.get(key, default)
    try:
        return int(value)
    except ValueError:
        raise InvalidProgramError(f"The Kafka property '{key}' is an integer, not '{value}'.") from None
