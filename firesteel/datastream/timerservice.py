"""How a function reads the clocks and sets timers."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """Reads both clocks and sets timers for the current key.

    A key has at most one timer per timestamp and clock, however often it is registered.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The current event time in milliseconds; the smallest long before the first watermark."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Calls ``on_timer`` for the current key once the wall clock reaches the timestamp."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Calls ``on_timer`` for the current key once the watermark reaches the timestamp."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Takes a processing-time timer back, if it is there and has not fired."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Takes an event-time timer back, if it is there and has not fired."""
