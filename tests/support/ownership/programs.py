"""Programs whose functions change what they have emitted, stored or read, each with the results Flink gives.

In each the right results are those of functions that share no object: with one another, with state, with other windows.
``@program`` names the results as a stream, and as a batch where these are others.
"""

from __future__ import annotations

from tests.support.ownership import joins, records, states, windows
from tests.support.ownership.base import PROGRAMS

__all__ = ["PROGRAMS", "REGISTERED"]

REGISTERED = (states, windows, records, joins)
"""The modules whose programs are in PROGRAMS."""
