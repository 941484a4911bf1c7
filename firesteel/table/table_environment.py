"""TableEnvironment: executes SQL."""

from firesteel.table.environment.environment import TableEnvironment
from firesteel.table.environment.stream_environment import StreamTableEnvironment

__all__ = ["StreamTableEnvironment", "TableEnvironment"]
