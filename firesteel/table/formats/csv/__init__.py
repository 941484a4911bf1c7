"""The format ``csv``."""

from firesteel.table.formats.csv.factory import FACTORY

__all__ = ["FACTORY"]
