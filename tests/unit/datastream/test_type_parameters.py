"""Type parameters of streams and functions at run time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import cloudpickle

from firesteel.api.output_tag import OutputTag
from firesteel.datastream import (
    CheckpointListener,
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    ProcessWindowFunction,
)
from firesteel.testing import collect, test_environment

T = TypeVar("T")


def test_classes_accept_type_parameters_and_stay_what_they_are() -> None:
    env = test_environment()
    stream = env.from_collection([1])
    assert isinstance(stream, DataStream)
    assert isinstance(stream.key_by(lambda x: x), KeyedStream)
    assert DataStream[int] == DataStream[int]
    assert KeyedStream[int, str] == KeyedStream[int, str]
    tag = OutputTag[int]("late")
    assert tag == OutputTag("late")
    assert not hasattr(tag, "__dict__")


def test_a_function_with_type_parameters_runs_and_is_pickled_by_value() -> None:
    class Plus(MapFunction[int, int], CheckpointListener):
        def __init__(self, number: int):
            self.number = number

        def map(self, value: int) -> int:
            return value + self.number

        def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
            pass

    copied = cloudpickle.loads(cloudpickle.dumps(Plus(2)))
    assert isinstance(copied, MapFunction)
    assert copied.map(1) == 3
    assert collect(test_environment().from_collection([1, 2]).map(Plus(1))) == [2, 3]


def test_functions_of_programs_may_be_generic_themselves() -> None:
    # in PyFlink most functions are not generic, so that Generic may be the first base as well as the last
    class First(Generic[T], MapFunction):  # noqa: PYI059
        def map(self, value: Any) -> Any:
            return value

    class Last(MapFunction[T, T], Generic[T]):
        def map(self, value: T) -> T:
            return value

    class Keyed(KeyedProcessFunction[T, T, T]):
        def process_element(self, value: T, ctx: KeyedProcessFunction.Context) -> Iterable[T]:
            yield value

    class OfWindows(ProcessWindowFunction[T, T, str, Any], Generic[T]):
        def process(self, key: str, context: Any, elements: Iterable[T]) -> Iterable[T]:
            return elements

    stream = test_environment().from_collection([1])
    assert collect(stream.map(First[int]()).map(Last[int]()).key_by(lambda x: x).process(Keyed[int]())) == [1]
    assert isinstance(OfWindows[int](), ProcessWindowFunction)
