"""Runs PyFlink programs unchanged: once this module is imported, ``import pyflink…`` imports Firesteel's modules.

Import it before any module of PyFlink, or run the program with ``firesteel run --pyflink``.
"""

from __future__ import annotations

import sys

import firesteel
from firesteel.process.pyflink_names import resolve_pyflink_names

if sys.modules.get("pyflink", firesteel) is not firesteel:
    raise ImportError("PyFlink has been imported already. Import firesteel.pyflink before any module of PyFlink.")
resolve_pyflink_names()
