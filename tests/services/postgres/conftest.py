"""What the tests against a PostgreSQL server share."""

from __future__ import annotations

from tests.services.postgres.postgres_tables import tables

__all__ = ["tables"]
