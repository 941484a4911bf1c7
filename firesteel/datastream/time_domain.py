"""The two clocks a timer can follow."""

from firesteel.runtime.time.domain import TimeDomain

__all__ = ["TimeDomain"]
