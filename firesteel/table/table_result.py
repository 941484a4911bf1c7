"""TableResult: the result of a statement."""

from firesteel.table.environment.results.result import CloseableIterator, TableResult

__all__ = ["CloseableIterator", "TableResult"]
