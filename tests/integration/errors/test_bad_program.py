"""Programs that cannot run: refused with the operator and the user's line, before anything is started."""

from __future__ import annotations

import re
import socket
import threading
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Time
from firesteel.common.errors import (
    FunctionSerializationError,
    InvalidProgramError,
    JobExecutionError,
    RecordSerializationError,
)
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

Env = Callable[..., StreamExecutionEnvironment]

_LINES = Path(__file__).read_text().splitlines()
_lock = threading.Lock()


def place(name: str) -> str:
    """Where the line is that ends with the comment ``# <-- <name>``."""
    (number,) = [i for i, text in enumerate(_LINES, 1) if re.search(rf"# <-- {re.escape(name)}$", text)]
    return f"{__file__}:{number}"


# -- functions and records that cannot travel ----------------------------------------------------------------


class HoldsSocket(MapFunction):
    def __init__(self) -> None:
        self.connection = socket.socket()

    def map(self, value: Any) -> Any:
        return value


def test_a_function_that_holds_a_lock(in_process_env: Env) -> None:
    lock = threading.Lock()

    def locked(value: int) -> int:
        with lock:
            return value

    env = in_process_env(1)
    env.from_collection([1]).map(lambda x: x).map(locked).name("locked").uid("u").print()  # <-- lock
    with pytest.raises(FunctionSerializationError) as caught:
        env.execute()
    error = caught.value
    assert (error.operator, error.uid, error.defined_at) == ("locked", "u", place("lock"))
    assert error.culprit is not None
    assert "'lock'" in error.culprit
    assert "'locked'" in error.culprit
    assert error.hint is not None


def test_a_function_object_that_holds_a_socket(in_process_env: Env) -> None:
    function = HoldsSocket()
    env = in_process_env(1)
    env.from_collection([1]).map(function).print()
    try:
        with pytest.raises(FunctionSerializationError) as caught:
            env.execute()
    finally:
        function.connection.close()
    assert caught.value.operator == "Map"
    assert "'connection'" in str(caught.value.culprit)


def test_a_function_that_holds_a_generator(in_process_env: Env) -> None:
    numbers = (i for i in range(3))
    env = in_process_env(1)
    env.from_collection([1]).filter(lambda _: next(numbers)).print()  # type: ignore[return-value]
    with pytest.raises(FunctionSerializationError) as caught:
        env.execute()
    assert (caught.value.operator, "'numbers'" in str(caught.value.culprit)) == ("Filter", True)


def test_a_key_selector_and_a_partitioner_that_hold_a_lock(in_process_env: Env) -> None:
    lock = threading.Lock()
    env = in_process_env(1)
    env.from_collection([1]).key_by(lambda x: (lock, x)[1]).map(lambda x: x).name("keyed").print()  # <-- key selector
    with pytest.raises(FunctionSerializationError) as caught:
        env.execute()
    assert (caught.value.operator, caught.value.defined_at) == ("keyed", place("key selector"))
    partitioned = in_process_env(1)
    partitioned.from_collection([1]).partition_custom(lambda _, n: (lock, n)[1] - 1, lambda x: x).map(str).print()
    with pytest.raises(FunctionSerializationError) as caught:
        partitioned.execute()
    assert (caught.value.operator, "'lock'" in str(caught.value.culprit)) == ("Map", True)


def test_an_element_of_a_collection_that_cannot_be_pickled(in_process_env: Env) -> None:
    env = in_process_env(1)
    env.from_collection([threading.Lock()]).print()  # <-- collection
    with pytest.raises(FunctionSerializationError) as caught:
        env.execute()
    assert caught.value.defined_at == place("collection")


def test_a_record_that_cannot_be_pickled(in_process_env: Env) -> None:
    env = in_process_env(2)
    locks = env.from_collection(range(4)).map(lambda _: threading.Lock())  # <-- lock record
    locks.rebalance().map(lambda x: x).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    failure = caught.value.failure
    assert (failure.error_type, failure.operator) == (RecordSerializationError.__name__, "Map")
    assert failure.defined_at == place("lock record")
    assert "lock" in str(failure.element)
    assert failure.hint is not None


def test_a_result_that_cannot_be_pickled(in_process_env: Env) -> None:
    with pytest.raises(JobExecutionError) as caught:
        list(in_process_env(1).from_collection([1]).map(lambda _: threading.Lock()).execute_and_collect())
    assert caught.value.failure.error_type == RecordSerializationError.__name__
    assert "lock" in str(caught.value.failure.element)


def test_a_record_that_cannot_be_read(in_process_env: Env) -> None:
    class Unreadable:
        def __reduce__(self) -> Any:
            return int, ("not a number",)

    env = in_process_env(2)
    env.from_collection(range(4)).map(lambda _: Unreadable()).rebalance().filter(bool).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    assert (caught.value.failure.error_type, caught.value.failure.operator) == ("RecordSerializationError", "Filter")


def test_classes_of_the_program_itself_come_back_as_they_were(in_process_env: Env) -> None:
    @dataclass(frozen=True)
    class Local:
        x: int

    Pair = namedtuple("Pair", "a b")  # noqa: PYI024
    stream = in_process_env(2).from_collection([1, 2]).map(Local).rebalance()
    results = list(stream.map(lambda r: (isinstance(r, Local), Pair(r, 0))).execute_and_collect())
    assert [known for known, _pair in results] == [True, True]
    assert {type(pair) for _known, pair in results} == {Pair}
    assert {pair.a for _known, pair in results} == {Local(1), Local(2)}


# -- programs ------------------------------------------------------------------------------------------------


def test_nothing_to_execute(in_process_env: Env) -> None:
    env = in_process_env(1)
    with pytest.raises(InvalidProgramError) as nothing:
        env.execute()
    env.from_collection([1]).map(lambda x: x)
    with pytest.raises(InvalidProgramError) as no_sink:
        env.execute()
    env.from_collection([1]).print()
    env.execute()
    with pytest.raises(InvalidProgramError) as again:
        env.execute()
    hints = {caught.value.hint for caught in (nothing, no_sink, again)}
    assert None not in hints
    assert len(hints) == 3


def test_two_operators_of_one_uid(in_process_env: Env) -> None:
    env = in_process_env(1)
    stream = env.from_collection([1])
    stream = stream.map(lambda x: x).uid("same")  # <-- first uid
    stream.map(lambda x: x).uid("same").print()  # <-- second uid
    with pytest.raises(InvalidProgramError) as caught:
        env.execute()
    assert all(part in caught.value.message for part in ("'same'", place("first uid"), place("second uid")))


@pytest.mark.parametrize("parallelism", [0, -1, 1.5, "2", True])
def test_a_parallelism_that_is_none(in_process_env: Env, parallelism: Any) -> None:
    with pytest.raises(InvalidProgramError):
        in_process_env(1).set_parallelism(parallelism)
    with pytest.raises(InvalidProgramError):
        in_process_env(1).from_collection([1]).map(str).set_parallelism(parallelism)


def test_parallelism_above_max_parallelism(in_process_env: Env) -> None:
    env = in_process_env(5)
    env.from_collection([1]).key_by(lambda x: x).map(str).set_max_parallelism(4).print()  # <-- parallelism
    with pytest.raises(InvalidProgramError) as caught:
        env.execute()
    assert all(part in caught.value.message for part in ("5", "4", place("parallelism")))
    with pytest.raises(InvalidProgramError):
        in_process_env(1).from_collection([1]).key_by(str).map(str).set_max_parallelism(4).set_parallelism(5)
    assert caught.value.hint is not None


@pytest.mark.parametrize("length", [0, -1])
def test_windows_that_have_no_length(in_process_env: Env, length: int) -> None:
    bad, good = Time.seconds(length), Time.seconds(5)
    for tumbling in (TumblingEventTimeWindows, TumblingProcessingTimeWindows):
        with pytest.raises(InvalidProgramError):
            tumbling.of(bad)
    for sliding in (SlidingEventTimeWindows, SlidingProcessingTimeWindows):
        with pytest.raises(InvalidProgramError):
            sliding.of(bad, good)
        with pytest.raises(InvalidProgramError):
            sliding.of(good, bad)
    for sessions in (EventTimeSessionWindows, ProcessingTimeSessionWindows):
        with pytest.raises(InvalidProgramError):
            sessions.with_gap(bad)
    with pytest.raises(InvalidProgramError):
        in_process_env(1).from_collection([1]).key_by(str).count_window(length)


# -- files ---------------------------------------------------------------------------------------------------


def test_an_input_file_that_is_missing(in_process_env: Env, tmp_path: Path) -> None:
    missing = tmp_path / "missing.txt"
    with pytest.raises(InvalidProgramError) as caught:
        in_process_env(1).read_text_file(str(missing)).print()
    assert str(missing) in caught.value.message
    assert caught.value.hint is not None


def test_an_input_file_that_goes_missing(in_process_env: Env, tmp_path: Path) -> None:
    file = tmp_path / "input.txt"
    file.write_text("here\n")
    env = in_process_env(1)
    env.read_text_file(str(file)).print()  # <-- gone
    file.unlink()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    assert caught.value.failure.defined_at == place("gone")
    assert str(file) in caught.value.failure.message


def test_bytes_that_are_no_text(in_process_env: Env, tmp_path: Path) -> None:
    file = tmp_path / "input.txt"
    file.write_bytes(b"fine\nbad \xff line\n")
    env = in_process_env(1)
    env.read_text_file(str(file)).print()  # <-- bytes
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    failure = caught.value.failure
    assert (failure.operator, failure.defined_at) == ("Source: File Source", place("bytes"))
    assert str(file) in failure.message
    assert failure.hint is not None
