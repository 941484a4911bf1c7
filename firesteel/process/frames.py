"""Stack frames of all threads of this process."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Mapping
from types import FrameType

__all__ = ["current_frames"]

_collection_is_off = threading.Lock()


def current_frames() -> Mapping[int, FrameType]:
    """The innermost frame of each thread by its identifier, read without a garbage collection in between.

    Up to Python 3.12 the interpreter holds the lock on its list of threads while it creates the frames. A collection
    that begins there may run Python code, which gives up the interpreter's lock; if another thread then starts or ends
    a thread, both locks are waited for in the wrong order and the process stands still (CPython issue 106883).
    """
    with _collection_is_off:
        was_on = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames()
        finally:
            if was_on:
                gc.enable()
