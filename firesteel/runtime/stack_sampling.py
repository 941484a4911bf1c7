"""What a slot is doing: samples of its stack for flame graphs, and dumps of all its threads."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias

from firesteel.runtime.codegen import GENERATED_PREFIX, LOOPS
from firesteel.runtime.slot_answers import AskedSlot
from firesteel.runtime.task_metrics import BACKPRESSURED, IDLE

if TYPE_CHECKING:
    from firesteel.runtime.task import Task

__all__ = ["SampleStacks", "StackSample", "ThreadDump", "thread_dump"]

StackSample: TypeAlias = tuple[str, int, bool, tuple[str, ...], int]
"""Vertex, subtask, whether it was on the CPU, its stack from the outside to the inside, and how often it was so."""

IDLE_STACK = ("waits for input",)
BACKPRESSURED_STACK = ("waits for its consumers",)
OTHERS_STACK = ("waits for other tasks of the slot",)
_MOST_FRAMES = 200


@dataclass(frozen=True)
class SampleStacks:
    """Looks at the stack of a slot's thread again and again, and says which task was doing what."""

    samples: int
    interval_s: float

    def answer(self, slot: AskedSlot) -> list[StackSample]:
        """The samples of all tasks of the slot; takes as long as sampling does."""
        found: Counter[tuple[str, int, bool, tuple[str, ...]]] = Counter()
        state = _ThreadState(slot.thread_id)
        try:
            for number in range(self.samples):
                if slot.is_over.wait(self.interval_s if number else 0.0):
                    break
                _sample(slot, state, found)
        finally:
            state.close()
        return [(*sample, count) for sample, count in found.items()]


@dataclass(frozen=True)
class ThreadDump:
    """Asks for the stacks of all threads of a slot's process."""

    def answer(self, _slot: AskedSlot) -> list[dict[str, str]]:
        """As `thread_dump` gives them."""
        return thread_dump()


def thread_dump() -> list[dict[str, str]]:
    """The threads of this process with their stacks, as Flink's REST API gives them."""
    frames = sys._current_frames()
    threads = []
    for thread in threading.enumerate():
        frame = None if thread.ident is None else frames.get(thread.ident)
        kind = "daemon " if thread.daemon else ""
        lines = [f'"{thread.name}" {kind}Id={thread.ident}']
        if frame is not None:
            entries = reversed(traceback.extract_stack(frame))
            lines += [f"\tat {entry.name} ({entry.filename}:{entry.lineno})" for entry in entries]
        threads.append({"threadName": thread.name, "stringifiedThreadInfo": "\n".join(lines) + "\n\n"})
    return threads


def _sample(slot: AskedSlot, state: _ThreadState, found: Counter[tuple[str, int, bool, tuple[str, ...]]]) -> None:
    innermost = sys._current_frames().get(slot.thread_id)
    active, stack, waits = _active_task(innermost)
    is_running = active is not None and not waits and state.is_running(innermost)
    for task in list(slot.tasks):
        if task.finished:
            continue
        vertex_id, subtask = task.descriptor.vertex_id, task.descriptor.subtask
        if task is active and not waits:
            found[vertex_id, subtask, is_running, stack] += 1
        else:
            found[vertex_id, subtask, False, _waiting(task)] += 1


def _waiting(task: Task) -> tuple[str, ...]:
    if task.running or (task.times is not None and task.times.state == BACKPRESSURED):
        return BACKPRESSURED_STACK
    return IDLE_STACK if task.times is None or task.times.state == IDLE else OTHERS_STACK


def _active_task(frame: FrameType | None) -> tuple[Task | None, tuple[str, ...], bool]:
    """The task whose code a stack is in, its part of the stack, and whether it waits there for room.

    The executor runs nothing of a task but through ``_guarded``, and waits in the middle of a batch in
    ``wait_for_room``: which of the two is the innermost tells it all.
    """
    from firesteel.runtime.task_executor import TaskExecutor

    guarded, waits = TaskExecutor._guarded.__code__, TaskExecutor.wait_for_room.__code__
    stack: list[str] = []
    while frame is not None:
        code = frame.f_code
        if code is guarded or code is waits:
            return frame.f_locals.get("task"), tuple(reversed(stack[-_MOST_FRAMES:])), code is waits
        stack += reversed(_names(frame, is_innermost=not stack))
        frame = frame.f_back
    return None, (), True


def _names(frame: FrameType, *, is_innermost: bool) -> list[str]:
    """What a frame is called; a user's expression that is part of a generated loop has no frame, but gets a name."""
    code = frame.f_code
    name: str = getattr(code, "co_qualname", code.co_name)
    if not code.co_filename.startswith(GENERATED_PREFIX):
        return [f"{name} ({_short(code.co_filename)}:{frame.f_lineno})"]
    loop = LOOPS.get(code.co_filename)
    line = None if loop is None else loop.lines.get(frame.f_lineno)
    if line is None or line.operator is None:
        return [code.co_filename.strip("<>").removeprefix("firesteel ")]
    names = [line.operator.descriptor.name]
    if line.user_code is not None and is_innermost:
        file, number = line.user_code
        names.append(f"function ({_short(file)}:{number})")
    return names


def _short(file: str) -> str:
    return "/".join(file.rsplit("/", 2)[-2:]) if "/firesteel/" in file else file.rsplit("/", 1)[-1]


class _ThreadState:
    """Whether a thread runs or sleeps, as Linux says; elsewhere as its innermost function lets one guess."""

    def __init__(self, thread_id: int):
        self._file: int | None = None
        thread = next((thread for thread in threading.enumerate() if thread.ident == thread_id), None)
        if thread is not None and thread.native_id is not None:
            with suppress(OSError):
                self._file = os.open(f"/proc/self/task/{thread.native_id}/stat", os.O_RDONLY)

    def is_running(self, innermost: FrameType | None) -> bool:
        """Whether it is not waiting for anything outside of the process."""
        if self._file is not None:
            # The interpreter's lock is given up for these calls: a thread that only waited for that one runs again,
            # perhaps not yet at the first.
            return any(os.pread(self._file, 512, 0).rpartition(b") ")[2][:1] == b"R" for _ in range(2))
        return innermost is None or innermost.f_code.co_name not in _WAITING_FUNCTIONS

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)


_WAITING_FUNCTIONS = frozenset(
    {"poll", "wait", "select", "recv", "recv_into", "readinto", "accept", "sleep", "acquire"}
)
