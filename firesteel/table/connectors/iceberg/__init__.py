"""The connector ``iceberg``: tables of Apache Iceberg."""

from firesteel.table.connectors.iceberg.factory import FACTORY

__all__ = ["FACTORY"]
