"""Finds the line of user code of an API call, for later error messages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import firesteel

__all__ = ["user_call_site"]

_PACKAGE = str(Path(firesteel.__file__).resolve().parent) + os.sep


def user_call_site() -> str | None:
    """``path:line`` of the innermost caller outside this package, or None if there is none."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
