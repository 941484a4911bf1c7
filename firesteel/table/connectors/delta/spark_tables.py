"""Tables of Delta Lake that Spark's own reader reads in bounded queries, where the session has Delta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.connectors.lakes.spark_tables import SparkLakeTable, has_class

if TYPE_CHECKING:
    from firesteel.table.connectors.delta.factory import DeltaTableSource

__all__ = ["spark_read"]

_SOURCE = "org.apache.spark.sql.delta.sources.DeltaDataSource"


def spark_read(source: DeltaTableSource, session: Any) -> SparkLakeTable | str:
    """How Spark reads a table, or why it does not."""
    if session is None or not has_class(session, _SOURCE):
        return "the session of Spark has no Delta Lake"
    if source.options.reads_changes:
        return "changes are read by a job"
    assert source.table is not None
    options = {"versionAsOf": source.options.version, "timestampAsOf": source.options.timestamp}
    given = tuple((name, str(value)) for name, value in options.items() if value is not None)
    return SparkLakeTable("delta", source.table.path, given, source.type)
