"""Tables of Apache Iceberg as source and sink."""

from firesteel.connectors.iceberg.scan import StartingStrategy
from firesteel.connectors.iceberg.sink import IcebergSink, IcebergSinkBuilder, TableLoader
from firesteel.connectors.iceberg.source import IcebergSource, IcebergSourceBuilder

__all__ = [
    "IcebergSink",
    "IcebergSinkBuilder",
    "IcebergSource",
    "IcebergSourceBuilder",
    "StartingStrategy",
    "TableLoader",
]
