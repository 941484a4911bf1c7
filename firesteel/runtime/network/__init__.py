"""The network stack of a slot: credit-based flow control for one thread with non-blocking sockets."""

from __future__ import annotations

from firesteel.runtime.network.config import DEFAULT_NETWORK_CONFIG, NetworkConfig
from firesteel.runtime.network.environment import NetworkEnvironment
from firesteel.runtime.network.errors import (
    AuthenticationError,
    NetworkError,
    PeerLostError,
    PeersMissingError,
    ProtocolError,
)
from firesteel.runtime.network.gate import InputChannel, InputGate
from firesteel.runtime.network.local import connect_local
from firesteel.runtime.network.partition import ResultPartition, ResultSubpartition

__all__ = [
    "DEFAULT_NETWORK_CONFIG",
    "AuthenticationError",
    "InputChannel",
    "InputGate",
    "NetworkConfig",
    "NetworkEnvironment",
    "NetworkError",
    "PeerLostError",
    "PeersMissingError",
    "ProtocolError",
    "ResultPartition",
    "ResultSubpartition",
    "connect_local",
]
