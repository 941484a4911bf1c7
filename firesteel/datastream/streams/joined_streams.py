"""JoinedStreams and CoGroupedStreams: two streams whose records with equal keys meet in windows. Not in PyFlink."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from firesteel.api.generics import Generic, R, S, T1_co, T2_co, W_co
from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream, check_function, parallelism_of
from firesteel.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, KeySelector
from firesteel.datastream.streams.windowed_stream import WindowedStream
from firesteel.datastream.windowing.assigners import WindowAssigner
from firesteel.datastream.windowing.co_group_functions import (
    CoGroupWindowFunction,
    tag_one,
    tag_two,
    union_key_selector,
)
from firesteel.datastream.windowing.evictors import Evictor
from firesteel.datastream.windowing.triggers import Trigger

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CoGroupedStreams", "CoGroupedWindows", "EqualTo", "JoinedStreams", "JoinedWindows", "Where", "WithWindow"]


@dataclass(frozen=True)
class WithWindow(Generic[T1_co, T2_co]):
    """Two streams with their keys and windows. Each setting returns a new object, as in Flink."""

    _streams: tuple[DataStream[T1_co], DataStream[T2_co]]
    _key_selector: Any
    _key_type: TypeInformation | None
    _assigner: WindowAssigner[Any, Any]
    _trigger: Trigger[Any, Any] | None = None
    _evictor: Evictor[Any, Any] | None = None
    _allowed_lateness: int | None = None

    _name: ClassVar[str] = ""

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Sets the trigger. Its elements are pairs: 0 and a record of the first stream, or 1 and one of the second."""
        return replace(self, _trigger=trigger)

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Sets the evictor. The values of its elements are pairs, as in the trigger."""
        return replace(self, _evictor=evictor)

    def allowed_lateness(self, time_ms: int) -> Self:
        """Sets the allowed lateness, the time after its end in which a window accepts late records."""
        return replace(self, _allowed_lateness=time_ms)

    def _apply(self, function: Any, kind: type[Any], output_type: Any) -> DataStream:
        one, two = self._streams
        tagged = _tagged(one, tag_one).union(_tagged(two, tag_two))
        windowed = WindowedStream(tagged.key_by(self._key_selector, self._key_type), self._assigner)
        if self._trigger is not None:
            windowed.trigger(self._trigger)
        if self._evictor is not None:
            windowed.evictor(self._evictor)
        if self._allowed_lateness is not None:
            windowed.allowed_lateness(self._allowed_lateness)
        stream = windowed.apply(CoGroupWindowFunction(function, kind), output_type)
        called = type(function).__name__ if isinstance(function, kind) else "function"
        stream.set_description(f"{self._name}({self._assigner}, {called})")
        return stream


def _tagged(stream: DataStream[Any], tag: Callable[[Any], Any]) -> DataStream[Any]:
    tagged = stream.map(tag)
    # as parallel as its input, so that records stay in the subtask they are in
    tagged._transformation.parallelism = parallelism_of(stream._transformation)
    return tagged


class JoinedWindows(WithWindow[T1_co, T2_co]):
    """Joined streams with keys and windows."""

    _name = "Join"

    def apply(
        self,
        function: JoinFunction[T1_co, T2_co, R] | FlatJoinFunction[T1_co, T2_co, R] | Callable[[T1_co, T2_co], R],
        output_type: Any = None,
    ) -> DataStream[R]:
        """Calls the function with each pair; a callable returns one result, like a JoinFunction."""
        if isinstance(function, FlatJoinFunction):
            return self._apply(function, FlatJoinFunction, output_type)
        check_function("apply", function, JoinFunction)
        return self._apply(function, JoinFunction, output_type)


class CoGroupedWindows(WithWindow[T1_co, T2_co]):
    """Grouped streams with keys and windows."""

    _name = "CoGroup"

    def apply(
        self,
        function: CoGroupFunction[T1_co, T2_co, R] | Callable[[list[T1_co], list[T2_co]], Iterable[R] | None],
        output_type: Any = None,
    ) -> DataStream[R]:
        """Calls the function with the records of both streams; it returns or yields results."""
        check_function("apply", function, CoGroupFunction)
        return self._apply(function, CoGroupFunction, output_type)


class EqualTo(Generic[W_co]):
    """Two streams with the keys of both."""

    def __init__(self, streams: Any, key_selector: Any, key_type: TypeInformation | None, windows: Callable[..., W_co]):
        self._settings = streams, key_selector, key_type
        self._windows = windows

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> W_co:
        """Sets the windows in which records meet."""
        return self._windows(*self._settings, window_assigner)


class Where(Generic[T2_co, W_co]):
    """Two streams with the key of the first."""

    def __init__(self, streams: Any, key_selector: Any, key_type: TypeInformation | None, windows: Callable[..., W_co]):
        check_function("where", key_selector, KeySelector)
        self._streams = streams
        self._key_selector = key_selector
        self._key_type = key_type
        self._windows = windows

    def equal_to(
        self, key_selector: Callable[[T2_co], S] | KeySelector[T2_co, S], key_type: TypeInformation | None = None
    ) -> EqualTo[W_co]:
        """Sets the key of the second stream."""
        check_function("equal_to", key_selector, KeySelector)
        if key_type is not None and self._key_type is not None and key_type != self._key_type:
            raise InvalidProgramError(
                f"The keys of the two streams have different types: {self._key_type} and {key_type}."
            )
        union = union_key_selector(self._key_selector, key_selector)
        return EqualTo(self._streams, union, self._key_type or key_type, self._windows)


class JoinedStreams(Generic[T1_co, T2_co]):
    """Two streams that are joined in windows: each pair of records with equal keys in a window is a match."""

    def __init__(self, stream1: DataStream[T1_co], stream2: DataStream[T2_co]):
        self._streams = _checked("join", stream1, stream2)

    def where(
        self, key_selector: Callable[[T1_co], S] | KeySelector[T1_co, S], key_type: TypeInformation | None = None
    ) -> Where[T2_co, JoinedWindows[T1_co, T2_co]]:
        """Sets the key of the first stream."""
        return Where(self._streams, key_selector, key_type, JoinedWindows)


class CoGroupedStreams(Generic[T1_co, T2_co]):
    """Two streams that are grouped in windows: a function gets the records of both with equal keys in a window."""

    def __init__(self, stream1: DataStream[T1_co], stream2: DataStream[T2_co]):
        self._streams = _checked("co_group", stream1, stream2)

    def where(
        self, key_selector: Callable[[T1_co], S] | KeySelector[T1_co, S], key_type: TypeInformation | None = None
    ) -> Where[T2_co, CoGroupedWindows[T1_co, T2_co]]:
        """Sets the key of the first stream."""
        return Where(self._streams, key_selector, key_type, CoGroupedWindows)


def _checked(method: str, stream1: DataStream[Any], stream2: DataStream[Any]) -> tuple[DataStream, DataStream]:
    if not isinstance(stream2, DataStream):
        raise TypeError(f"{method} needs a DataStream, got {type(stream2).__name__}.")
    stream1._check_same_environment(stream2, method)
    return stream1, stream2
