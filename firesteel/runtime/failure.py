"""From an exception in a task to an account a user can act on: operator, own line, key, element, hint."""

from __future__ import annotations

import linecache
import os
import pickle
import traceback
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError, InvalidKeyError, TaskFailure, UserCodeError
from firesteel.runtime.codegen import GENERATED_PREFIX, LOOPS, LoopLine

if TYPE_CHECKING:
    from firesteel.runtime.chain import ChainedOperator
    from firesteel.runtime.deployment import TaskDeploymentDescriptor

__all__ = ["describe_failure", "preview"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH120, PTH100
_EXAMPLES = "<frozen"
PREVIEW_LENGTH = 200


def preview(value: Any) -> str:
    """A value's repr, cut to a readable length; never raises."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a user's __repr__ may do anything
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    if len(text) > PREVIEW_LENGTH:
        return f"{text[:PREVIEW_LENGTH]}… ({len(text):,} characters)"
    return text


def describe_failure(
    error: BaseException,
    task: TaskDeploymentDescriptor | None = None,
    chain: Sequence[ChainedOperator] = (),
    operator: ChainedOperator | None = None,
) -> TaskFailure:
    """What happened, where in the user's program, on which element; ``operator`` where it is known already."""
    if isinstance(error, UserCodeError):
        return error.failure
    frames = list(_frames(error.__traceback__))
    line, frame, batch_operator = _locate(frames, chain)
    element = None
    if batch_operator is not None:
        operator = batch_operator
    elif line is not None and line.operator is not None:
        operator = line.operator
    if frame is not None:
        name = "value" if line is None else line.element
        if name in frame.f_locals:
            element = preview(frame.f_locals[name])
    user = _user_frame(frames)
    if line is not None and line.user_code is not None and frames[-1][0] is frame:
        user = line.user_code
    error, hint = _improve(error, line)
    descriptor = None if operator is None else operator.descriptor
    key = None
    if operator is not None and operator.backend is not None and operator.backend.key is not None:
        key = preview(operator.backend.key)
    if line is not None and line.what == "key_by":
        key = None
    message = error.message if isinstance(error, FiresteelError) else str(error)
    return TaskFailure(
        message=message,
        error_type=type(error).__name__,
        task=None if task is None else task.name_with_subtask,
        operator=None if descriptor is None else descriptor.name,
        uid=None if descriptor is None else descriptor.uid,
        subtask=None if task is None else task.subtask,
        user_file=None if user is None else user[0],
        user_line=None if user is None else user[1],
        user_source=None if user is None else linecache.getline(*user).strip() or None,
        defined_at=None if descriptor is None else descriptor.defined_at,
        key=key,
        element=element,
        hint=hint,
        traceback="".join(traceback.format_exception(error)),
    )


def _frames(tb: TracebackType | None) -> Any:
    while tb is not None:
        yield tb.tb_frame, tb.tb_lineno
        tb = tb.tb_next


def _locate(
    frames: list[tuple[FrameType, int]], chain: Sequence[ChainedOperator]
) -> tuple[LoopLine | None, FrameType | None, ChainedOperator | None]:
    """The innermost place in the chain: a generated line, or a batch operator's own loop."""
    by_operator = {id(chained.operator): chained for chained in chain}
    for frame, number in reversed(frames):
        source = LOOPS.get(frame.f_code.co_filename)
        if source is not None:
            return source.lines.get(number), frame, None
        chained = by_operator.get(id(frame.f_locals.get("self")))
        if chained is not None:
            return None, frame, chained
    return None, None, None


def _user_frame(frames: list[tuple[FrameType, int]]) -> tuple[str, int] | None:
    """The innermost frame that is neither Firesteel's nor generated nor a library's."""
    for frame, number in reversed(frames):
        name = frame.f_code.co_filename
        if name.startswith((_PACKAGE, GENERATED_PREFIX, _EXAMPLES)):
            continue
        if f"{os.sep}site-packages{os.sep}" in name or f"{os.sep}lib{os.sep}python3" in name:
            continue
        return name, number
    return None


def _improve(error: BaseException, line: LoopLine | None) -> tuple[BaseException, str | None]:
    """A clearer error and a hint for mistakes that Python's own message does not explain."""
    if isinstance(error, FiresteelError):
        return error, error.hint
    text = str(error)
    if isinstance(error, TypeError) and "unhashable type" in text and line is not None and line.what == "key_by":
        kind = text.rpartition("'")[0].rpartition("'")[2]
        return (
            InvalidKeyError(f"A key of type '{kind}' is unhashable."),
            "Use an immutable key: a tuple instead of a list, a frozenset instead of a set.",
        )
    if isinstance(error, TypeError) and text.endswith("object is not iterable"):
        return error, "flat_map and process functions return an iterable of results (or yield them), or None."
    if isinstance(error, (pickle.PicklingError, AttributeError)) and "pickle" in text.lower():
        return error, "Records and functions travel between processes: they must be picklable."
    if isinstance(error, (KeyError, IndexError)) and line is not None and line.what == "key_by":
        return error, "The key selector looks for a field the element does not have."
    return error, None
