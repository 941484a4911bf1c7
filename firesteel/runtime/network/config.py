"""Network settings: buffer, queue and credit sizes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_NETWORK_CONFIG", "NetworkConfig"]


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Sizes of buffers and queues; the names are those of Flink's options, the defaults its defaults."""

    segment_size: int = 32 * 1024
    """``taskmanager.memory.segment-size``: the bytes a buffer aims at."""

    buffers_per_channel: int = 2
    """``taskmanager.network.memory.buffers-per-channel``: exclusive buffers of an input channel."""

    floating_buffers_per_gate: int = 8
    """``taskmanager.network.memory.floating-buffers-per-gate``: buffers the channels of a gate share."""

    max_buffers_per_channel: int = 10
    """``taskmanager.network.memory.max-buffers-per-channel``: unsent buffers a subpartition may hold."""

    initial_records_per_buffer: int = 1024
    """Records in a buffer before anything is known about their size."""

    max_records_per_buffer: int = 4096
    """Records in a buffer however small they are."""

    max_frame_bytes: int = (1 << 31) - 1
    """The largest buffer that is sent or accepted; a single record must fit."""

    handshake_timeout_s: float = 10.0
    """How long a connection may take to authenticate."""

    @property
    def gathered_columns_size(self) -> int:
        """The bytes that a buffer of columns aims at: kernels have a cost per batch, so more than those of records."""
        return 4 * self.segment_size

    @property
    def max_columns_size(self) -> int:
        """The bytes of columns above which they become several buffers."""
        return 32 * self.segment_size

    def __post_init__(self) -> None:
        for name in ("segment_size", "buffers_per_channel", "max_buffers_per_channel", "max_frame_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.floating_buffers_per_gate < 0:
            raise ValueError(f"floating_buffers_per_gate must not be negative: {self.floating_buffers_per_gate}")


DEFAULT_NETWORK_CONFIG = NetworkConfig()
