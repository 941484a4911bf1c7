"""Conformance suite: checks that every source and every sink must pass, also custom ones.

- :class:`SourceConformance`: subclass it, and define how to create a source with known records.
- :class:`SinkConformance`: subclass it, and define how to create a sink and how to read what it has written.
- :class:`RoundTripConformance`: subclass it, and define how rows are written and read again.

The ``test_`` methods are found by pytest; ``MySuite().run()`` runs them without. See
``docs/connectors/writing_a_connector.md``.
"""

from __future__ import annotations

from firesteel.testing.conformance.errors import CheckSkipped, ConformanceError
from firesteel.testing.conformance.kill_points import KillPoint
from firesteel.testing.conformance.round_trip_suite import RoundTripConformance
from firesteel.testing.conformance.sink_suite import SinkConformance
from firesteel.testing.conformance.source_harness import SourceHarness, SourceSnapshot
from firesteel.testing.conformance.source_suite import SourceConformance
from firesteel.testing.conformance.suite import ConformanceReport, ConformanceSuite

__all__ = [
    "CheckSkipped",
    "ConformanceError",
    "ConformanceReport",
    "ConformanceSuite",
    "KillPoint",
    "RoundTripConformance",
    "SinkConformance",
    "SourceConformance",
    "SourceHarness",
    "SourceSnapshot",
]
