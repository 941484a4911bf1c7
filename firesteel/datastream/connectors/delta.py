"""Tables of Delta Lake as source and sink."""

from firesteel.connectors.delta.sink import DeltaSink, DeltaSinkBuilder
from firesteel.connectors.delta.source import DeltaSource, DeltaSourceBuilder

__all__ = ["DeltaSink", "DeltaSinkBuilder", "DeltaSource", "DeltaSourceBuilder"]
