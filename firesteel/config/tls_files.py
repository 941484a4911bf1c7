"""PEM files of TLS that options name, and errors that name the options; shared by all users of TLS."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.common.errors import FiresteelError
from firesteel.config.configuration import Configuration
from firesteel.config.option import ConfigOption

if TYPE_CHECKING:
    import ssl

__all__ = ["TlsConfigurationError", "load_authorities", "load_certificate", "required_file"]

Option = ConfigOption[str | None]


class TlsConfigurationError(FiresteelError):
    """TLS cannot be set up as configured."""


def required_file(configuration: Configuration, option: Option) -> str:
    """The file that an option names, which TLS cannot do without."""
    path = configuration.get(option)
    if not path:
        raise TlsConfigurationError(f"TLS requires {option.key}.", hint=option.description)
    return path


def load_certificate(
    context: ssl.SSLContext, certificate: str, certificate_option: Option, key: str, key_option: Option
) -> None:
    """Gives the context the certificate it shows."""
    _look_at(certificate, certificate_option)
    _look_at(key, key_option)
    try:
        # with no password at all, a key that has one would ask for it at the terminal
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:  # ssl.SSLError is one
        mismatch = getattr(error, "reason", None) == "KEY_VALUES_MISMATCH"
        raise TlsConfigurationError(
            f"The certificate {certificate} ({certificate_option.key}) and the key {key} ({key_option.key}) cannot be "
            f"used: {'the key is not that of the certificate' if mismatch else error}",
            hint="Both must be PEM files. The key must match the certificate and have no passphrase.",
        ) from None


def load_authorities(context: ssl.SSLContext, authorities: str, option: Option) -> None:
    """Gives the context the certificates it checks the other side's against."""
    _look_at(authorities, option)
    try:
        context.load_verify_locations(authorities)
    except OSError as error:
        raise TlsConfigurationError(
            f"The certificates in {authorities} ({option.key}) cannot be used: {error}",
            hint="It must be a PEM file with the certificates of one or more authorities.",
        ) from None


def _look_at(path: str, option: Option) -> None:
    # OpenSSL's own errors do not name the file
    try:
        with Path(path).open("rb"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TlsConfigurationError(
            f"The file {path} of {option.key} cannot be read on {socket.gethostname()}: {reason}",
            hint="The file must exist on every host and be readable by the user that runs Firesteel.",
        ) from None
