"""TablePipeline: a query and the table that its rows are written to."""

from firesteel.table.environment.table_pipeline import TablePipeline

__all__ = ["TablePipeline"]
