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
    .with_description("Whether a buffer is sent after the buffer timeout; if not, only when it is full.")
)
BUFFER_TIMEOUT = (
    _key("execution.buffer-timeout.interval")
    .duration_type()
    .default_value(Duration.of_millis(100))
    .with_deprecated_keys("execution.buffer-timeout")
    .with_description("The buffer timeout: maximum time a record waits in a buffer. 0 sends each record immediately.")
)
BUFFERS_PER_CHANNEL = (
    _key("taskmanager.network.memory.buffers-per-channel")
    .int_type()
    .default_value(2)
    .with_description("Number of exclusive buffers (credits) per input channel.")
)
FLOATING_BUFFERS_PER_GATE = (
    _key("taskmanager.network.memory.floating-buffers-per-gate")
    .int_type()
    .default_value(8)
    .with_description("Number of floating buffers of an input gate, for channels with a backlog.")
)
MAX_BUFFERS_PER_CHANNEL = (
    _key("taskmanager.network.memory.max-buffers-per-channel")
    .int_type()
    .default_value(10)
    .with_description("Maximum number of queued buffers per output channel before its task is backpressured.")
)
SEGMENT_SIZE = (
    _key("taskmanager.memory.segment-size")
    .memory_type()
    .default_value(MemorySize.parse("32 kb"))
    .with_description("Size of a buffer.")
)
