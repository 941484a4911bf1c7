"""Finds the line of user code of an API call, for later error messages."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import firesteel

__all__ = ["user_call_site"]

_PACKAGE = str(Path(firesteel.__file__).resolve().parent) + os.sep


_LIBRARY = (functools.__file__, "<frozen runpy>")
_COMMAND = os.sep + "firesteel"
"""How the path of the installed command ends."""


def user_call_site() -> str | None:
    """``path:line`` of the innermost caller outside this package, or None if there is none."""
    frame = sys._getframe(1)
    while _is_ours(frame.f_code.co_filename):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_ours(file_name: str) -> bool:
    return file_name.startswith(_PACKAGE) or file_name in _LIBRARY or file_name.endswith(_COMMAND)
