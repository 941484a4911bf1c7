"""Tables of Iceberg that Spark's own reader reads in bounded queries, where the session has Iceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.connectors.lakes.spark_tables import SparkLakeTable, has_class

if TYPE_CHECKING:
    from firesteel.table.connectors.iceberg.factory import IcebergTableSource

__all__ = ["spark_read"]

_SOURCE = "org.apache.iceberg.spark.source.IcebergSource"


def spark_read(source: IcebergTableSource, session: Any) -> SparkLakeTable | str:
    """How Spark reads a table, or why it does not: by its metadata file, without a catalog of Spark's."""
    options = source.options
    if session is None or not has_class(session, _SOURCE):
        return "the session of Spark has no Iceberg"
    if any(value is not None for value in (options.start_snapshot_id, options.branch, options.tag)):
        return "appended rows, branches and tags are read by a job"
    assert source.table is not None
    metadata = source.table.loaded.metadata_location
    source.table.close()
    found = {"snapshot-id": options.snapshot_id, "as-of-timestamp": options.as_of_timestamp}
    given = tuple((name, str(value)) for name, value in found.items() if value is not None)
    return SparkLakeTable("iceberg", metadata, given, source.type)
