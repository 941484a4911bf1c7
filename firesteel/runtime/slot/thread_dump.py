"""Thread dump of a process."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.process.frames import current_frames

if TYPE_CHECKING:
    from firesteel.runtime.slot.answers import AskedSlot

__all__ = ["ThreadDumpQuestion", "ThreadStack", "dump_threads"]


@dataclass(frozen=True)
class ThreadStack:
    """A thread, and its stack as text with the innermost frame last."""

    name: str
    stack: str


def dump_threads(prefix: str = "") -> list[ThreadStack]:
    """All Python threads of this process, by name; ``prefix`` comes before each name.

    >>> any("dump_threads" in thread.stack for thread in dump_threads() if thread.name == "MainThread")
    True
    """
    known = {thread.ident: thread for thread in threading.enumerate()}
    stacks = []
    for ident, frame in current_frames().items():
        thread = known.get(ident)
        name = thread.name if thread is not None else f"thread {ident}"
        kind = " daemon" if thread is not None and thread.daemon else ""
        text = f'"{prefix}{name}"{kind} Id={ident}\n' + "".join(traceback.format_stack(frame))
        stacks.append(ThreadStack(prefix + name, text))
    return sorted(stacks, key=lambda thread: thread.name)


@dataclass(frozen=True)
class ThreadDumpQuestion:
    """Asks a slot for its threads."""

    prefix: str

    def answer(self, _slot: AskedSlot) -> list[tuple[str, str]]:
        return [(thread.name, thread.stack) for thread in dump_threads(self.prefix)]
