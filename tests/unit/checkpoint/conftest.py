"""What a store is in. Of the session, so that a test does not count as leaving it behind."""

from tests.support.fixtures.checkpoint import faults, s3_server, service, store

__all__ = ["faults", "s3_server", "service", "store"]
