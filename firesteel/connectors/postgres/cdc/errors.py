"""Errors of change data capture."""

from __future__ import annotations

from firesteel.connectors.postgres.errors import PostgresError

__all__ = [
    "CaptureSetupError",
    "ReplicationSlotLostError",
    "SchemaChangedError",
    "SlotInUseError",
    "TruncatedTableError",
    "UnavailableValueError",
    "UnreadableValueError",
]


class CaptureSetupError(PostgresError):
    """The server, a table or the publication is not set up so that changes can be captured."""


class SlotInUseError(PostgresError):
    """Another process reads from the replication slot."""


class ReplicationSlotLostError(PostgresError):
    """The slot no longer has the changes that are to be read next: some are lost for this job."""


class SchemaChangedError(PostgresError):
    """A captured table has been altered."""


class TruncatedTableError(PostgresError):
    """A captured table was emptied by TRUNCATE, which a stream of changed rows cannot express."""


class UnavailableValueError(PostgresError):
    """An update left a large value as it was, so the server has not sent it."""


class UnreadableValueError(PostgresError):
    """A value that Python has nothing for, such as a date after the year 9999."""
