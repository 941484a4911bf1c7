"""What the threads of this process are doing, for jobs that do not end."""

from __future__ import annotations

import sys
import threading
import traceback

__all__ = ["thread_dump"]


def thread_dump() -> str:
    """Returns the stack of every thread."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        stack = "".join(traceback.format_stack(frame))
        parts.append(f"Thread {names.get(ident, ident)}:\n{stack}")
    return "\n".join(parts)
