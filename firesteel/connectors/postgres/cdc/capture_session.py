"""Database sessions of a capture, with fixed output settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.connectors.postgres.cdc.options import CdcOptions
from firesteel.connectors.postgres.connection import connect

if TYPE_CHECKING:
    import psycopg

__all__ = ["connect_capture"]

_OPTIONS = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex"


def connect_capture(
    options: CdcOptions, what: str | None = None, *, autocommit: bool = True, **parameters: str
) -> psycopg.Connection[Any]:
    """A connection that is called ``firesteel cdc <what>``, with the slot's name unless given.

    The log comes in the encoding of the session, and is read as UTF8, with any encoding of the database.
    """
    return connect(
        options.connection,
        name=f"firesteel cdc {what or options.slot_name}",
        autocommit=autocommit,
        options=_OPTIONS,
        client_encoding="UTF8",
        **parameters,
    )
