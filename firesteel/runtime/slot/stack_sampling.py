"""Stack sampling of a slot, for flame graphs."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, TypeAlias

import firesteel
from firesteel.process.frames import current_frames
from firesteel.runtime.codegen.loops import GENERATED_PREFIX, LOOPS
from firesteel.runtime.slot.answers import AskedSlot
from firesteel.runtime.task.task_metrics import BACKPRESSURED, BUSY, IDLE

if TYPE_CHECKING:
    from firesteel.runtime.task.task import Task

__all__ = ["SampleStacks", "StackSample"]

StackSample: TypeAlias = tuple[str, int, bool, tuple[str, ...], int]
"""Vertex, subtask, whether it was on the CPU, its stack from the outside to the inside, and how often it was so."""

IDLE_STACK = ("waits for input",)
BACKPRESSURED_STACK = ("waits for its consumers",)
OTHERS_STACK = ("waits for other tasks of the slot",)
MAILBOX_STACK = ("network and mails of the slot",)
_MAX_FRAMES = 200
_FOREIGN = [
    (f"{Path(firesteel.__file__).parent}/", "firesteel/"),
    *((f"{sysconfig.get_path(name)}/", "site-packages/") for name in ("purelib", "platlib")),
    (f"{sysconfig.get_path('stdlib')}/", "lib/python/"),
]
"""Directories of files that are not the user's, and what is shown in their place."""
_SWITCH_INTERVAL_S = 0.00005
"""How long the slot's thread may go on when a sample is due. With Python's own 5 ms it would mostly be seen where it
gives up the interpreter's lock by itself, that is in system calls."""


@dataclass(frozen=True)
class SampleStacks:
    """Samples the stack of a slot's thread periodically, and attributes each sample to a task."""

    samples: int
    interval_s: float

    def answer(self, slot: AskedSlot) -> list[StackSample]:
        """The samples of all tasks of the slot; takes as long as sampling does."""
        found: Counter[tuple[str, int, bool, tuple[str, ...]]] = Counter()
        state = _ThreadState(slot.thread_id)
        try:
            with _prompt_switches:
                for number in range(self.samples):
                    if slot.is_over.wait(self.interval_s if number else 0.0):
                        break
                    _sample(slot, state, found)
        finally:
            state.close()
        return [(*sample, count) for sample, count in found.items()]


def _sample(slot: AskedSlot, state: _ThreadState, found: Counter[tuple[str, int, bool, tuple[str, ...]]]) -> None:
    tasks = [task for task in slot.tasks if not task.finished and task.times is not None]
    codes = _executor_codes()
    # Related values are read at once: the thread continues soon. Names are found later.
    innermost = current_frames().get(slot.thread_id)
    active, places, waits = _active_task(innermost, *codes)
    states = [task.times.state for task in tasks]  # type: ignore[union-attr]
    is_running = (active is None or not waits) and state.is_running(innermost)
    for task, activity in zip(tasks, states, strict=True):
        vertex_id, subtask = task.descriptor.vertex_id, task.descriptor.subtask
        if task is active and not waits:
            found[vertex_id, subtask, is_running, _stack(places)] += 1
        elif active is None and activity == BUSY:
            # between two steps: on behalf of the task that had the last one
            found[vertex_id, subtask, is_running, MAILBOX_STACK] += 1
        else:
            waiting = BACKPRESSURED_STACK if task is active else _WAITING.get(activity, OTHERS_STACK)
            found[vertex_id, subtask, False, waiting] += 1


_WAITING = {IDLE: IDLE_STACK, BACKPRESSURED: BACKPRESSURED_STACK}
_Place: TypeAlias = tuple[CodeType, int]
"""A function and the instruction it is at."""


def _executor_codes() -> tuple[CodeType, CodeType]:
    from firesteel.runtime.slot.task_executor import TaskExecutor  # which imports who answers questions

    return TaskExecutor._guarded.__code__, TaskExecutor.wait_for_room.__code__


def _active_task(frame: FrameType | None, guarded: CodeType, waits: CodeType) -> tuple[Task | None, list[_Place], bool]:
    """The task whose code a stack is in, its part of the stack, and whether it waits there for room.

    The executor runs nothing of a task but through ``_guarded``, and waits in the middle of a batch in
    ``wait_for_room``: the innermost of the two decides.
    """
    places: list[_Place] = []
    while frame is not None:
        code = frame.f_code
        if code is guarded or code is waits:
            return frame.f_locals.get("task"), places, code is waits
        places.append((code, frame.f_lasti))
        frame = frame.f_back
    return None, [], True


def _stack(places: list[_Place]) -> tuple[str, ...]:
    names = [name for place in places[-_MAX_FRAMES:] for name in _names(*place, is_innermost=place is places[0])]
    return tuple(reversed(names))


def _names(code: CodeType, instruction: int, *, is_innermost: bool) -> list[str]:
    """What a frame is called, the innermost name first; a user's expression in a generated loop gets a name, too."""
    number = next((line for start, end, line in code.co_lines() if start <= instruction < end and line), 0)
    name: str = getattr(code, "co_qualname", code.co_name)
    if not code.co_filename.startswith(GENERATED_PREFIX):
        return [f"{name} ({_short(code.co_filename)}:{number})"]
    loop = LOOPS.get(code.co_filename)
    line = None if loop is None else loop.lines.get(number)
    if line is None or line.operator is None:
        return [code.co_filename.strip("<>").removeprefix("firesteel ")]
    names = [line.operator.name]
    if line.user_code is not None and is_innermost:
        file, at = line.user_code
        names.insert(0, f"function ({_short(file)}:{at})")
    return names


def _short(file: str) -> str:
    """Where a function is: whether that is the engine, a library or the user's own file shows in its beginning."""
    for directory, shown in _FOREIGN:
        if file.startswith(directory):
            return shown + file[len(directory) :]
    return file.rsplit("/", 1)[-1]


class _PromptSwitches:
    """Makes the interpreter switch threads quickly while samples are taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_INTERVAL_S)

    def __exit__(self, *_exception: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._before)


_prompt_switches = _PromptSwitches()


class _ThreadState:
    """Whether a thread runs or sleeps, from Linux; elsewhere guessed from its innermost function."""

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
        if self._file is not None:
            os.close(self._file)


_WAITING_FUNCTIONS = frozenset(
    {"poll", "wait", "select", "recv", "recv_into", "readinto", "accept", "sleep", "acquire"}
)
