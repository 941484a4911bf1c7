"""The NEXMark benchmark's events as a source."""

from firesteel.connectors.generators.nexmark import (
    Auction,
    Bid,
    NexmarkConfig,
    NexmarkEvent,
    NexmarkGenerator,
    NexmarkJsonSchema,
    NexmarkSource,
    Person,
)

__all__ = [
    "Auction",
    "Bid",
    "NexmarkConfig",
    "NexmarkEvent",
    "NexmarkGenerator",
    "NexmarkJsonSchema",
    "NexmarkSource",
    "Person",
]
