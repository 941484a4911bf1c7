"""Client properties as arguments of kafka-python, used for requests that librdkafka does not support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.errors import InvalidProgramError

__all__ = ["TokenProvider", "wire_arguments"]

_ARGUMENTS = {
    "client.id": "client_id",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "security.protocol": "security_protocol",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_UPPER_CASE = ("security.protocol", "sasl.mechanism", "sasl.mechanisms")
_FILES = "Give it as files: ssl.ca.location, ssl.certificate.location, ssl.key.location."
_TICKET = "Get a ticket outside of the job (kinit), and set sasl.kerberos.service.name only."
_FUNCTION = "Give a Python function that returns a token and its expiry: oauth_cb."
_REFUSED = {
    "enable.ssl.certificate.verification": "Give the certificate that the brokers' are signed with: ssl.ca.location.",
    "https.ca.location": _FUNCTION,
    "https.ca.pem": _FUNCTION,
    "sasl.kerberos.keytab": _TICKET,
    "sasl.kerberos.kinit.cmd": _TICKET,
    "sasl.kerberos.principal": _TICKET,
    "ssl.ca.pem": _FILES,
    "ssl.certificate.pem": _FILES,
    "ssl.key.pem": _FILES,
    "ssl.keystore.location": _FILES,
    "ssl.keystore.password": _FILES,
}
_HARMLESS = frozenset({"enable.ssl.certificate.verification=true", "sasl.oauthbearer.method=default"})
_SECURITY = ("ssl.", "sasl.", "https.", "enable.ssl.", "enable.sasl.")


def wire_arguments(properties: Mapping[str, Any]) -> dict[str, Any]:
    """What a KafkaAdminClient is made with; a security property that it cannot follow is refused."""
    arguments: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in properties["bootstrap.servers"].split(",")]
    }
    for name, value in properties.items():
        if name in _ARGUMENTS:
            arguments[_ARGUMENTS[name]] = value.upper() if name in _UPPER_CASE else value
        elif name == "ssl.endpoint.identification.algorithm":
            arguments["ssl_check_hostname"] = value == "https"
        elif name == "oauth_cb":
            arguments["sasl_oauth_token_provider"] = TokenProvider(value, properties.get("sasl.oauthbearer.config"))
        elif name == "sasl.oauthbearer.config" and "oauth_cb" in properties:
            continue
        elif name.startswith(_SECURITY) and f"{name}={str(value).lower()}" not in _HARMLESS:
            raise InvalidProgramError(
                f"The Kafka property '{name}' cannot be used with DeliveryGuarantee.EXACTLY_ONCE: prepared "
                "transactions are finished with a client that does not support it.",
                hint=_REFUSED.get(name) or (_FUNCTION if "oauth" in name else None),
            )
    return arguments


class TokenProvider:
    """kafka-python's token provider: the function librdkafka calls, with the same argument."""

    def __init__(self, function: Any, config: str | None):
        self._function = function
        self._config = config

    def token(self) -> str:
        """A token that is valid now."""
        return str(self._function(self._config or "")[0])

    def extensions(self) -> dict[str, str]:
        """None."""
        return {}
