"""ORC files."""

from firesteel.formats.orc.writer import OrcBulkWriters

__all__ = ["OrcBulkWriters"]
