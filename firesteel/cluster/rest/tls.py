"""TLS of the REST port."""

from __future__ import annotations

import ssl

from firesteel.common.cluster_options import (
    SSL_REST_AUTHENTICATION,
    SSL_REST_CA,
    SSL_REST_CERTIFICATE,
    SSL_REST_ENABLED,
    SSL_REST_KEY,
)
from firesteel.common.config_options import ConfigOption
from firesteel.common.configuration import Configuration
from firesteel.common.errors import FiresteelError

__all__ = ["TlsConfigurationError", "server_context"]


class TlsConfigurationError(FiresteelError):
    """TLS cannot be set up as configured."""


def server_context(configuration: Configuration) -> ssl.SSLContext | None:
    """What the server's side of TLS is, or None if the port speaks plain HTTP.

    With ``security.ssl.rest.authentication-enabled`` no connection comes about without a client certificate.
    """
    if not configuration.get(SSL_REST_ENABLED):
        if configuration.get(SSL_REST_AUTHENTICATION):
            raise TlsConfigurationError(
                f"{SSL_REST_AUTHENTICATION.key} needs TLS.", hint=f"Set {SSL_REST_ENABLED.key} to true as well."
            )
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = _file(configuration, SSL_REST_CERTIFICATE), _file(configuration, SSL_REST_KEY)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise TlsConfigurationError(
            f"The certificate {certificate} and the key {key} cannot be used: {error}",
            hint="Both are PEM files, the key has no pass phrase and belongs to the certificate.",
        ) from None
    if configuration.get(SSL_REST_AUTHENTICATION):
        authority = _file(configuration, SSL_REST_CA)
        try:
            context.load_verify_locations(authority)
        except (OSError, ssl.SSLError) as error:
            raise TlsConfigurationError(f"The certificates in {authority} cannot be used: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _file(configuration: Configuration, option: ConfigOption[str | None]) -> str:
    path = configuration.get(option)
    if not path:
        raise TlsConfigurationError(f"TLS needs {option.key}.", hint=option.description)
    return path
