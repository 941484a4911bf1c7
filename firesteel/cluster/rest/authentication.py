"""Authentication and authorization: tokens, client certificates, and protection against cross-site requests.

Where a port is open to this machine only, processes of the JobManager's own user may read and change without a token,
but not the pages that its browsers show: such a page can neither reach the port under a name of its own (the Host
check) nor change anything from its own site (the Origin check). All others need the token or a client certificate.
Code, which pickled objects and programs are, needs it always.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from firesteel.cluster.rest.request import RestError
from firesteel.rest.endpoint import Access
from firesteel.rest.token import read_or_create_token

__all__ = ["AccessControl", "read_or_create_token"]

_BEARER = b"bearer "
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_REMEMBERED_HOSTS = 100


class AccessControl:
    """Decides about one request at a time, from its headers alone: before any of its body is read."""

    def __init__(
        self,
        token: str,
        *,
        bound_host: str,
        public_host: str = "localhost",
        has_client_certificates: bool = False,
        authenticates_reads: bool | None = None,
    ):
        self._token = token.encode()
        self._has_client_certificates = has_client_certificates
        self._authenticates_reads = authenticates_reads
        address = ipaddress.ip_address(bound_host)
        self._is_loopback = address.is_loopback
        self._is_wildcard = address.is_unspecified
        self._names = {bound_host.lower(), public_host.lower(), *_LOCAL_NAMES}
        if not self._is_loopback:
            self._names.add(socket.gethostname().lower())
        self._known_hosts: set[bytes] = set()

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises RestError if the Host of a request is not this server: a name that was made to point here."""
        host = headers.get(b"host")
        if host is None or host in self._known_hosts:
            return
        if self._is_ours(host):
            if len(self._known_hosts) < _REMEMBERED_HOSTS:
                self._known_hosts.add(host)
            return
        if not self._has_token(headers):
            raise RestError(
                403,
                f"Unknown host name {host.decode('latin-1')[:200]!r}.",
                hint="If clients use this name for the JobManager, set rest.address to it.",
            )

    def is_plain_read(self, headers: Mapping[bytes, bytes], *, is_same_user: bool) -> bool:
        """Whether a request to read has no body, and needs no further check."""
        return (
            headers.get(b"host") in self._known_hosts
            and self._may_read(is_same_user=is_same_user)
            and b"content-length" not in headers
            and b"transfer-encoding" not in headers
        )

    def _may_read(self, *, is_same_user: bool) -> bool:
        """Whether a request needs no token to read."""
        if self._authenticates_reads is None:
            return is_same_user and self._is_loopback
        return not self._authenticates_reads

    def check(self, access: Access, headers: Mapping[bytes, bytes], *, is_same_user: bool) -> None:
        """Raises RestError if a request may not do what it asks for.

        ``is_same_user`` is true if it comes from this machine, and from the user that this process runs as.
        """
        if access is Access.READ:
            if not self._may_read(is_same_user=is_same_user):
                self._require_identity(headers)
            return
        if self._has_token(headers):
            return
        if not self._is_same_origin(headers):
            raise RestError(
                403,
                "Pages of other sites may not send requests that change anything.",
                hint="A proxy in between must forward the Host header unchanged.",
            )
        if access is Access.LOGIN:
            return  # what it carries is a secret itself
        if access is Access.CODE or not (is_same_user and self._is_loopback):
            self._require_identity(headers)

    def _require_identity(self, headers: Mapping[bytes, bytes]) -> None:
        if self._has_client_certificates or self._has_token(headers):
            # without a certificate that was verified there would be no connection
            return
        given = (
            "The token is not valid for this cluster."
            if b"authorization" in headers
            else "This request requires a token."
        )
        raise RestError(
            401,
            given,
            hint="Send 'Authorization: Bearer <token>'. The token is in the file 'token' of the cluster's directory, "
            "or in rest.token-file.",
        )

    def _has_token(self, headers: Mapping[bytes, bytes]) -> bool:
        value = headers.get(b"authorization", b"")
        if value[: len(_BEARER)].lower() != _BEARER:
            return False
        return hmac.compare_digest(value[len(_BEARER) :].strip(), self._token)

    def _is_ours(self, host: bytes) -> bool:
        try:
            name = urlsplit(f"//{host.decode('ascii')}").hostname or ""
        except ValueError:
            return False
        if name.rstrip(".") in self._names:
            return True
        if not self._is_wildcard:
            return False
        # an attacker can make a name point here, but not an address
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    @staticmethod
    def _is_same_origin(headers: Mapping[bytes, bytes]) -> bool:
        origin = headers.get(b"origin")
        if origin is not None:
            _, separator, place = origin.partition(b"://")
            return bool(separator) and place.lower() == headers.get(b"host", b"").lower()
        # an image or a link has no Origin, but Sec-Fetch-Site
        return headers.get(b"sec-fetch-site", b"none").lower() in (b"none", b"same-origin")
