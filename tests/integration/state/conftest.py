"""Every keyed state backend, one after the other."""

from tests.support.fixtures.state import backend, bench, clock

__all__ = ["backend", "bench", "clock"]
