"""The format ``json``."""

from firesteel.table.formats.json.factory import FACTORY

__all__ = ["FACTORY"]
