"""Both JSON libraries: what holds for one must hold for the other."""

from tests.support.fixtures.formats import library

__all__ = ["library"]
