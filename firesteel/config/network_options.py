"""The configuration options of the network between tasks: buffers, and how long a record waits in one."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOptions

__all__ = [
    "BUFFERS_PER_CHANNEL",
    "BUFFER_TIMEOUT",
    "BUFFER_TIMEOUT_ENABLED",
    "FLOATING_BUFFERS_PER_GATE",
    "MAX_BUFFERS_PER_CHANNEL",
    "SEGMENT_SIZE",
]

_key = ConfigOptions.key

BUFFER_TIMEOUT_ENABLED = (
    _key("execution.buffer-timeout.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether a buffer that is not full is sent after a while; if not, only full ones are.")
)
BUFFER_TIMEOUT = (
    _key("execution.buffer-timeout.interval")
    .duration_type()
    .default_value(Duration.of_millis(100))
    .with_deprecated_keys("execution.buffer-timeout")
    .with_description("How long a record may wait in a buffer for others; 0 sends each at once.")
)
BUFFERS_PER_CHANNEL = (
    _key("taskmanager.network.memory.buffers-per-channel")
    .int_type()
    .default_value(2)
    .with_description("Buffers that a receiver keeps for each channel alone: its exclusive credit.")
)
FLOATING_BUFFERS_PER_GATE = (
    _key("taskmanager.network.memory.floating-buffers-per-gate")
    .int_type()
    .default_value(8)
    .with_description("Buffers that an input gate lends to those of its channels that have a backlog.")
)
MAX_BUFFERS_PER_CHANNEL = (
    _key("taskmanager.network.memory.max-buffers-per-channel")
    .int_type()
    .default_value(10)
    .with_description("The most buffers that one output channel may have waiting before its task holds back.")
)
SEGMENT_SIZE = (
    _key("taskmanager.memory.segment-size")
    .memory_type()
    .default_value(MemorySize.parse("32 kb"))
    .with_description("The size at which a buffer counts as full and is sent.")
)
