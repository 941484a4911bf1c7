"""Which files make the TLS between the processes of a job; known before any of them is opened."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common.cluster_options import (
    SSL_INTERNAL_CA,
    SSL_INTERNAL_CERTIFICATE,
    SSL_INTERNAL_ENABLED,
    SSL_INTERNAL_KEY,
)
from firesteel.common.configuration import Configuration
from firesteel.common.tls import required_file

__all__ = ["TlsSettings"]


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """PEM files, at the same place on every host. Travels to the slots; the key itself does not."""

    certificate: str
    key: str
    ca: str

    @classmethod
    def of(cls, *configurations: Configuration | None) -> TlsSettings | None:
        """Those of the first configuration that has TLS between processes on; None if none has."""
        for configuration in configurations:
            if configuration is not None and configuration.get(SSL_INTERNAL_ENABLED):
                return cls(
                    required_file(configuration, SSL_INTERNAL_CERTIFICATE),
                    required_file(configuration, SSL_INTERNAL_KEY),
                    required_file(configuration, SSL_INTERNAL_CA),
                )
        return None
