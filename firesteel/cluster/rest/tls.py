"""TLS of the REST port."""

from __future__ import annotations

import ssl

from firesteel.config.cluster_options import (
    SSL_REST_AUTHENTICATION,
    SSL_REST_CA,
    SSL_REST_CERTIFICATE,
    SSL_REST_ENABLED,
    SSL_REST_KEY,
)
from firesteel.config.configuration import Configuration
from firesteel.config.tls_files import TlsConfigurationError, load_authorities, load_certificate, required_file

__all__ = ["TlsConfigurationError", "server_context"]


def server_context(configuration: Configuration) -> ssl.SSLContext | None:
    """The server's TLS context, or None if the port uses plain HTTP.

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
    certificate, key = required_file(configuration, SSL_REST_CERTIFICATE), required_file(configuration, SSL_REST_KEY)
    load_certificate(context, certificate, SSL_REST_CERTIFICATE, key, SSL_REST_KEY)
    if configuration.get(SSL_REST_AUTHENTICATION):
        load_authorities(context, required_file(configuration, SSL_REST_CA), SSL_REST_CA)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
