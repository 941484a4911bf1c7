"""TableEnvironment: executes SQL."""

from firesteel.table.environment.environment import TableEnvironment

__all__ = ["TableEnvironment"]
