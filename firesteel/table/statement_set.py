"""StatementSet: INSERT statements that run as one job."""

from firesteel.table.environment.statement_set import StatementSet

__all__ = ["StatementSet"]
