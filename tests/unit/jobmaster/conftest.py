"""A harness around the JobMaster: plays clock, host and slots, and checks invariants after every event."""

from tests.support.fixtures.jobmaster import harness, list_enumerator, make_harness, make_source, make_split

__all__ = ["harness", "list_enumerator", "make_harness", "make_source", "make_split"]
