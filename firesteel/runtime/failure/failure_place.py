"""Failure location: the operator, the user's line, the key and the element of an exception.

All of it is read off the traceback when something has failed, so that nothing has to be kept per record. A traceback
has three parts: the mailbox; the *place*, which begins with a generated line (``runtime.codegen.loops``) or a method of
an operator or output of the chain; and, where user code was called, the user's own frames.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import firesteel
from firesteel.common.errors import RecordSerializationError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.codegen.at_work import TIMESTAMP_ASSIGNER, function_at_work
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.codegen.inlining import code_location
from firesteel.runtime.codegen.loops import GENERATED_PREFIX, LOOPS, LoopLine
from firesteel.runtime.codegen.tuple_removal import element_in
from firesteel.runtime.model.partitioner import CustomPartitioner
from firesteel.runtime.operators.inline import InlineOperator
from firesteel.runtime.state.api.backend import NO_KEY

if TYPE_CHECKING:
    from firesteel.runtime.chain.running_operator import RunningOperator

__all__ = ["KEY_BY", "PARTITION_CUSTOM", "Place", "find_place"]

KEY_BY = "key_by"
PARTITION_CUSTOM = "partition_custom"

_PACKAGE = os.path.dirname(os.path.abspath(firesteel.__file__)) + os.sep  # noqa: PTH120, PTH100
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_SITE_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_CALLERS_WITH_ELEMENT = frozenset(
    {
        ("firesteel.runtime.time.watermark_generation", "process"),
        ("firesteel.runtime.chain.output", "_emit_custom"),
        ("firesteel.connectors.generators.datagen", "generate"),
    }
)
"""Those that call user functions from map() or a comprehension: the element is the function's first argument."""

_Frames = list[tuple[FrameType, int]]
_ABSENT = object()


@dataclass
class Place:
    """Information about an exception from its traceback."""

    chained: RunningOperator | None = None
    """The operator it belongs to, if that is one of the task's own."""
    output: TaskOutput | None = None
    """The output, where the user's key selector or partitioner for the next operator failed."""
    during: str | None = None
    user: tuple[str, int] | None = None
    """File and line of user code: where it raised, else where the function is whose result was refused."""
    in_user_code: bool = False
    """Whether user code raised, or something it called."""
    key: Any = _ABSENT
    element: Any = _ABSENT
    reading: bool = False
    """Whether what came from another task could not be read: no function of the operator is to blame."""
    timestamps: Sequence[Any] | None = None
    values: Sequence[Any] | None = None
    """The batch at hand, where an operator works on whole batches."""

    @property
    def has_key(self) -> bool:
        return self.key is not _ABSENT

    @property
    def has_element(self) -> bool:
        return self.element is not _ABSENT


def find_place(
    error: BaseException, chain: Sequence[RunningOperator], operator: RunningOperator | None = None
) -> Place:
    """Reads the place off the exception's traceback; ``operator`` is used where that names none."""
    frames = list(_frames(error.__traceback__))
    place = Place()
    start, owner, line = _locate(frames, chain)
    calls = next((i for i in range(start, len(frames)) if _is_outside(frames[i][0])), len(frames))
    inside = [frame for frame, _number in frames[start:calls]]
    place.in_user_code = calls < len(frames)
    _assign_owner(place, owner, line, chain, operator, error)
    place.during = _during(place, line, inside)
    place.user = _user_line(frames[calls:]) or _user_function(place, line, inside)
    _find_element(place, line, inside, frames[calls:])
    _find_key(place, inside, frames)
    return place


def _frames(tb: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while tb is not None:
        yield tb.tb_frame, tb.tb_lineno
        tb = tb.tb_next


def _is_outside(frame: FrameType) -> bool:
    return not frame.f_code.co_filename.startswith((_PACKAGE, GENERATED_PREFIX, "<frozen"))


# -- the operator --------------------------------------------------------------------------------------------


def _owners(chain: Sequence[RunningOperator]) -> dict[int, RunningOperator | TaskOutput]:
    """The objects whose methods are on a traceback, and what they belong to."""
    owners: dict[int, RunningOperator | TaskOutput] = {}
    for chained in chain:
        for part in (chained, chained.operator, *chained.timer_services):
            owners[id(part)] = chained
        for tag in (None, *chained.tags()):
            for consumer in chained.consumers(tag):
                if isinstance(consumer, TaskOutput):
                    owners[id(consumer)] = owners[id(consumer.partition)] = consumer
    return owners


def _locate(
    frames: _Frames, chain: Sequence[RunningOperator]
) -> tuple[int, RunningOperator | TaskOutput | None, LoopLine | None]:
    """Where the innermost frames begin that belong to the chain, and to what in it."""
    owners = _owners(chain)
    for index in range(len(frames) - 1, -1, -1):
        frame, number = frames[index]
        source = LOOPS.get(frame.f_code.co_filename)
        if source is not None:
            line = source.lines.get(number)
            if line is not None:
                return index, next((each for each in chain if each is line.operator), None), line
        owner = owners.get(id(frame.f_locals.get("self")))
        if owner is not None:
            first = index
            while first > 0 and owners.get(id(frames[first - 1][0].f_locals.get("self"))) is owner:
                first -= 1
            return first, owner, None
    return next((i for i in range(len(frames)) if not _is_outside(frames[i][0])), 0), None, None


def _assign_owner(
    place: Place,
    owner: RunningOperator | TaskOutput | None,
    line: LoopLine | None,
    chain: Sequence[RunningOperator],
    operator: RunningOperator | None,
    error: BaseException,
) -> None:
    if line is not None and isinstance(line.output, TaskOutput):
        place.output = line.output
    elif (
        isinstance(owner, TaskOutput)
        and isinstance(owner.descriptor.partitioner, CustomPartitioner)
        and not isinstance(error, RecordSerializationError)
    ):
        place.output = owner
    if isinstance(owner, TaskOutput):
        node = owner.descriptor.node_id
        place.chained = next((chained for chained in chain if chained.descriptor.node_id == node), None)
    else:
        place.chained = owner or operator
    if place.chained is None and place.output is None and chain and isinstance(error, RecordSerializationError):
        place.chained = chain[0]
        place.reading = True


def _during(place: Place, line: LoopLine | None, inside: list[FrameType]) -> str | None:
    if place.output is not None:
        custom = isinstance(place.output.descriptor.partitioner, CustomPartitioner)
        return PARTITION_CUSTOM if custom else KEY_BY
    if line is not None:
        return KEY_BY if line.what == KEY_BY else None
    if inside and inside[0].f_code.co_name in ("open", "close", "finish"):
        return f"{inside[0].f_code.co_name}()"
    for frame in reversed(inside):
        name, local = frame.f_code.co_name, frame.f_locals
        if name == "_fire" and "timestamp" in local:
            return f"on_timer({local['timestamp']})"
        if local.get("window") is not None:
            return f"window {local['window']!r}"
        if name == "_fire_window":
            return f"window {TimeWindow(local['start'], local['start'] + local['self']._size)!r}"
    return None


# -- the user's line -----------------------------------------------------------------------------------------


def _user_line(frames: _Frames) -> tuple[str, int] | None:
    """The innermost line of the user's program; else of an installed package, if its function was called."""
    for frame, number in reversed(frames):
        if _is_outside(frame) and not _is_library(frame.f_code.co_filename):
            return frame.f_code.co_filename, number
    if frames and not frames[0][0].f_code.co_filename.startswith(_STANDARD_LIBRARY):
        return frames[0][0].f_code.co_filename, frames[0][1]
    return None


def _is_library(file: str) -> bool:
    return file.startswith(_STANDARD_LIBRARY) or any(part in file for part in _SITE_PACKAGES)


def _user_function(place: Place, line: LoopLine | None, inside: list[FrameType]) -> tuple[str, int] | None:
    """Where the function is defined whose result was rejected: it has returned, so it is on no traceback."""
    found = line.user_code if line is not None else None
    if found is None and inside and not place.reading and not _is_life_cycle(place.during):
        function = _function_at_work(place, inside)
        found = None if function is None else code_location(function)
    if found is None or found[0].startswith(_PACKAGE) or _is_library(found[0]):
        return None
    return found


def _function_at_work(place: Place, inside: list[FrameType]) -> Callable[..., Any] | None:
    if place.output is not None:
        partitioner = place.output.descriptor.partitioner
        return method_of(partitioner.partitioner, "partition") if isinstance(partitioner, CustomPartitioner) else None
    if place.chained is None:
        return None
    operator, spec = place.chained.operator, place.chained.descriptor.spec
    if isinstance(operator, InlineOperator):
        on_timer: Callable[..., Any] | None = getattr(operator.function, "on_timer", None)
        return on_timer if (place.during or "").startswith("on_timer") else operator.call
    functions = spec.functions()
    return function_at_work(functions, inside[-1].f_code) or functions.get(TIMESTAMP_ASSIGNER)


def _is_life_cycle(during: str | None) -> bool:
    return during in ("open()", "close()", "finish()")


# -- element and key -----------------------------------------------------------------------------------------


def _find_element(place: Place, line: LoopLine | None, inside: list[FrameType], calls: _Frames) -> None:
    if line is not None:
        place.element = element_in(inside[0].f_locals, line.element or "", _ABSENT)
        return
    if _is_life_cycle(place.during):
        return
    for frame in reversed(inside):
        place.timestamps = place.timestamps or frame.f_locals.get("timestamps")
        place.values = place.values or frame.f_locals.get("values")
        if place.element is _ABSENT:
            place.element = frame.f_locals.get("value", _ABSENT)
    if place.element is _ABSENT and calls and _hands_elements(inside):
        code, local = calls[0][0].f_code, calls[0][0].f_locals
        arguments = [name for name in code.co_varnames[: code.co_argcount] if name != "self"]
        if arguments:
            place.element = local.get(arguments[0], _ABSENT)


def _hands_elements(inside: list[FrameType]) -> bool:
    callers = [frame for frame in inside if frame.f_code.co_name != "<listcomp>"]
    return bool(callers) and (callers[-1].f_globals["__name__"], callers[-1].f_code.co_name) in _CALLERS_WITH_ELEMENT


def _find_key(place: Place, inside: list[FrameType], frames: _Frames) -> None:
    if place.during in (KEY_BY, PARTITION_CUSTOM):
        # the routing table has the key that it refused
        refused = (frame for frame, _number in frames if frame.f_code.co_name in ("__missing__", "encode_key"))
        place.key = next((frame.f_locals["key"] for frame in refused if "key" in frame.f_locals), _ABSENT)
        return
    if place.chained is None or place.chained.backend is None or _is_life_cycle(place.during):
        return
    if getattr(place.chained.descriptor.spec, "all_windows", False):
        return  # window_all has a key, but not one of the user's
    for frame in reversed(inside):
        if frame.f_locals.get("key") is not None:
            place.key = frame.f_locals["key"]
            return
    place.key = _key_of_pane(inside)
    current = place.chained.backend.key
    if place.key is _ABSENT and current is not None and current is not NO_KEY:
        place.key = current


def _key_of_pane(inside: list[FrameType]) -> Any:
    """The key of the window contents being evaluated: panes are evaluated together, without their keys."""
    stored = next((f.f_locals["stored"] for f in reversed(inside) if "stored" in f.f_locals), _ABSENT)
    panes: dict[Any, Any] = next((f.f_locals["panes"] for f in reversed(inside) if "panes" in f.f_locals), {})
    return next((key for key, contents in panes.items() if contents is stored), _ABSENT)
