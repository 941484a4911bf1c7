"""Network errors between two processes of a job."""

from __future__ import annotations

from firesteel.common.errors import FiresteelError

__all__ = [
    "AuthenticationError",
    "CreditViolationError",
    "NetworkError",
    "PeerLostError",
    "PeersMissingError",
    "ProtocolError",
]


class NetworkError(FiresteelError):
    """Root of the network stack's errors."""


class ProtocolError(NetworkError):
    """The bytes of a connection are not what the protocol allows."""


class CreditViolationError(ProtocolError):
    """A sender sent a buffer its receiver had announced no credit for."""


class AuthenticationError(NetworkError):
    """One side of a connection does not know the job's secret, or has no certificate that the other trusts."""


class PeerLostError(NetworkError):
    """An established connection ended although the job still needs it."""

    def __init__(self, peer_id: int, reason: str):
        super().__init__(
            f"The connection to process {peer_id} was lost: {reason}",
            hint="The process was probably killed or its machine became unreachable; see its own log.",
        )
        self.peer_id = peer_id
        self.reason = reason


class PeersMissingError(NetworkError):
    """Not all processes of the job could be reached in time."""

    def __init__(self, missing: dict[int, str], waited_s: float):
        listed = "; ".join(f"process {peer} ({reason})" for peer, reason in sorted(missing.items()))
        super().__init__(
            f"{len(missing)} of the job's processes could not be reached within {waited_s:g} s: {listed}",
            hint="Executors must reach each other on ephemeral TCP ports: check firewalls and host names.",
        )
        self.missing = missing
