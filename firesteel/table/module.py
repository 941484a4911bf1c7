"""Module and ModuleEntry: sets of functions."""

from firesteel.table.catalog.modules import Module, ModuleEntry

__all__ = ["Module", "ModuleEntry"]
