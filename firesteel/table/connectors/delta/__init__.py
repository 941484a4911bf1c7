"""The connector ``delta``: tables of Delta Lake."""

from firesteel.table.connectors.delta.factory import FACTORY

__all__ = ["FACTORY"]
