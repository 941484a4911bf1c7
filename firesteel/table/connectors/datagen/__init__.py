"""The connector ``datagen``: random rows and sequences, generated as columns."""

from firesteel.table.connectors.datagen.factory import FACTORY

__all__ = ["FACTORY"]
