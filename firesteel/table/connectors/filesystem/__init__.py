"""The connector ``filesystem``: files of a directory, partitioned or not."""

from firesteel.table.connectors.filesystem.factory import FACTORY

__all__ = ["FACTORY"]
