"""TLS settings of the connections between the processes of a job, validated before any file is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.config.cluster_options import (
    SSL_INTERNAL_CA,
    SSL_INTERNAL_CERTIFICATE,
    SSL_INTERNAL_ENABLED,
    SSL_INTERNAL_KEY,
)
from firesteel.config.configuration import Configuration
from firesteel.config.tls_files import required_file

if TYPE_CHECKING:
    from firesteel.runtime.network.tls import InternalTls

__all__ = ["TlsSettings", "open_tls"]


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """PEM files, at the same place on every host. Travels to the slots; the key itself does not."""

    certificate: str
    key: str
    ca: str

    @classmethod
    def of(cls, configuration: Configuration) -> TlsSettings | None:
        """The files that a configuration names; None if TLS between processes is not on."""
        if not configuration.get(SSL_INTERNAL_ENABLED):
            return None
        return cls(
            required_file(configuration, SSL_INTERNAL_CERTIFICATE),
            required_file(configuration, SSL_INTERNAL_KEY),
            required_file(configuration, SSL_INTERNAL_CA),
        )


def open_tls(settings: TlsSettings | None) -> InternalTls | None:
    """Reads the files, and raises a TlsConfigurationError if they cannot be used; None without TLS."""
    if settings is None:
        return None
    from firesteel.runtime.network.tls import InternalTls  # Python's ssl takes its time to load

    return InternalTls(settings)
