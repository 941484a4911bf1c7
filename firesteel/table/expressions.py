"""The functions that make expressions of the Table API: ``col``, ``lit``, ``call`` and others."""

from firesteel.table.dsl.functions import *  # noqa: F403 - all names of one module, under PyFlink's name
from firesteel.table.dsl.functions import __all__  # noqa: F401
