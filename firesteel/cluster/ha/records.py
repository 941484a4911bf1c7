"""Records of a leader, and the fencing that keeps other processes from writing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from firesteel.cluster.ha.services import HighAvailabilityError

__all__ = ["CHECKPOINTS", "JOBS", "KINDS", "RESULTS", "FencedRecords", "decode", "encode"]

JOBS, CHECKPOINTS, RESULTS = KINDS = ("jobs", "checkpoints", "results")
"""A record's name is one of these, a slash, a number, a hyphen and the id of a job."""


class FencedRecords(Protocol):
    """Records that only the present leader can write: not because it asks before, but because the write itself fails
    for all other processes."""

    def load(self) -> Mapping[str, bytes]:
        """All records."""
        ...

    def put(self, name: str, data: bytes, delete: Iterable[str] = ()) -> None:
        """Writes or replaces one record, atomically and durably; then those go that it makes superfluous.

        FencedError: nothing was written, and nothing will be. Where it cannot be known whether the record was written,
        leadership is given up before anything is raised.
        """
        ...


def encode(record: msgspec.Struct) -> bytes:
    """A record as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2)


def decode(name: str, data: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct:
    """A record from JSON; HighAvailabilityError if it is none."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise HighAvailabilityError(
            f"The high-availability record {name} cannot be read: {error}.",
            hint="It was written by another version, or has been changed. Restore it, or start with another "
            "high-availability.cluster-id.",
        ) from error
