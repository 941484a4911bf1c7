"""Failure report of a task: operator, the user's line, key, element and a hint."""

from __future__ import annotations

import linecache
import pickle
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from firesteel.common.errors import (
    FiresteelError,
    InvalidKeyError,
    InvalidProgramError,
    RecordSerializationError,
    TaskFailure,
    UserCodeError,
)
from firesteel.config.redaction import Redactor
from firesteel.runtime.failure.failure_place import KEY_BY, Place, find_place
from firesteel.runtime.model.serialization import preview_record as preview

if TYPE_CHECKING:
    from firesteel.runtime.chain.running_operator import RunningOperator
    from firesteel.runtime.model.deployment import TaskDeploymentDescriptor

__all__ = ["describe_failure", "preview"]

MAX_MESSAGE = 2000
MAX_TRACEBACK = 20_000
_ARGUMENTS_HINT = (
    "map, filter, flat_map and key selectors get the element; reduce gets two values; process_element gets the "
    "element and the context."
)


def describe_failure(
    error: BaseException,
    task: TaskDeploymentDescriptor | None = None,
    chain: Sequence[RunningOperator] = (),
    operator: RunningOperator | None = None,
) -> TaskFailure:
    """What happened, where in the user's program, on which element; ``operator`` where it is known already."""
    if isinstance(error, UserCodeError):
        return error.failure
    try:
        failure = _describe(error, task, find_place(error, chain, operator))
    except Exception:  # noqa: BLE001 - user objects may raise anything when inspected; the failure must be reported
        failure = _describe(error, task, Place(chained=operator))
    # a store or a database may repeat in its error what it was given
    return Redactor({} if task is None else task.configuration.to_dict()).clean_failure(failure)


def _describe(error: BaseException, task: TaskDeploymentDescriptor | None, place: Place) -> TaskFailure:
    text = _traceback(error)
    error, hint = _improve(error, place)
    element = preview(place.element) if place.has_element else None
    if isinstance(error, RecordSerializationError) and error.record is not None:
        element = error.record
    output = None if place.output is None else place.output.descriptor
    descriptor = None if place.chained is None else place.chained.descriptor
    name = uid = defined_at = None
    if output is not None:
        name, uid, defined_at = output.consumer_operator, output.consumer_uid, output.consumer_defined_at
    elif descriptor is not None:
        name, uid, defined_at = descriptor.name, descriptor.uid, descriptor.defined_at
    return TaskFailure(
        message=_cut(_message(error), MAX_MESSAGE),
        error_type=type(error).__name__,
        task=None if task is None else task.name_with_subtask,
        operator=name,
        uid=uid,
        # routing runs in the task before the operator: the number would be that of another operator's subtask
        subtask=None if task is None or output is not None else task.subtask,
        user_file=None if place.user is None else place.user[0],
        user_line=None if place.user is None else place.user[1],
        user_source=None if place.user is None else linecache.getline(*place.user).strip() or None,
        defined_at=defined_at,
        key=preview(place.key) if place.has_key else None,
        element=element,
        hint=hint,
        traceback=text,
        during=place.during,
    )


def _message(error: BaseException) -> str:
    if isinstance(error, FiresteelError):
        return error.message
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - a user's __str__ may do anything
        return f"<no message: its __str__ raises {type(problem).__name__}>"


def _traceback(error: BaseException) -> str:
    return _cut("".join(traceback.format_exception(error)), MAX_TRACEBACK)


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]}… ({len(text) - length:,} characters left out) …{text[-half:]}"


def _improve(error: BaseException, place: Place) -> tuple[BaseException, str | None]:
    """A clearer error and a hint for mistakes that Python's own message does not explain."""
    if isinstance(error, FiresteelError):
        return error, error.hint
    text = _message(error)
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return error, "A function must not exit its process: raise an error to fail the job, or end the source."
    if isinstance(error, ImportError):
        return error, "The module must be installed in every process: in the environment of Spark's Python workers."
    if isinstance(error, (pickle.PicklingError, AttributeError, TypeError)) and "pickle" in text.lower():
        return error, "Records and functions travel between processes: they must be picklable."
    if place.during == KEY_BY:
        return _improve_key_by(error, text, place)
    if place.in_user_code:
        return error, None
    return _improve_result(error, text, place)


def _improve_key_by(error: BaseException, text: str, place: Place) -> tuple[BaseException, str | None]:
    if isinstance(error, TypeError) and "unhashable type" in text and not place.in_user_code:
        kind = text.rpartition("'")[0].rpartition("'")[2]
        return (
            InvalidKeyError(f"A key of type '{kind}' is unhashable."),
            "Use an immutable key: a tuple instead of a list, a frozenset instead of a set.",
        )
    if isinstance(error, (KeyError, IndexError, AttributeError)):
        return error, "The key selector looks for a field that the element does not have."
    if isinstance(error, TypeError) and "not subscriptable" in text:
        return error, "The key selector takes the element for a collection, which it is not."
    return error, None


def _improve_result(error: BaseException, text: str, place: Place) -> tuple[BaseException, str | None]:
    """The user's function returned, or could not be called at all: Firesteel's own code has raised."""
    if isinstance(error, TypeError):
        if text.endswith("object is not iterable"):
            kind = text.partition("'")[2].partition("'")[0]
            return (
                InvalidProgramError(f"The function must return an iterable or None, but it returned {kind}."),
                "Return a list of the results, yield them one by one, or return None where there are none.",
            )
        if "positional argument" in text:
            return error, _ARGUMENTS_HINT
        refused = _refused_timestamp(place)
        if refused is not None:
            return refused
    if isinstance(error, AttributeError) and text.endswith("'is_fire'"):
        kind = text.partition("'")[2].partition("'")[0]
        return (
            InvalidProgramError(f"A trigger must return a TriggerResult, but it returned {kind}."),
            "Return TriggerResult.CONTINUE if the trigger takes no action.",
        )
    return error, None


def _refused_timestamp(place: Place) -> tuple[BaseException, str | None] | None:
    if place.timestamps is None or place.values is None:
        return None
    for value, timestamp in zip(place.values, place.timestamps, strict=False):
        if not isinstance(timestamp, int):
            place.element = value
            return (
                InvalidProgramError(f"A record's timestamp is {preview(timestamp)}; expected milliseconds as an int."),
                "Convert in extract_timestamp: int(seconds * 1000), or int(moment.timestamp() * 1000).",
            )
    return None
