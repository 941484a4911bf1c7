"""Metrics of a connector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["ConnectorMetrics"]


class ConnectorMetrics(Protocol):
    """Where readers and writers register metrics, under Flink's names: ``numRecordsInErrors``, ``numRecordsSend`` …"""

    def counter(self, name: str) -> Any:
        """The counter of that name: ``inc(n)``."""
        ...

    def gauge(self, name: str, read: Callable[[], Any]) -> Any:
        """Registers a value that is computed when it is read."""
        ...
