"""Bad input where it takes real processes: what crosses them, what is printed in them, and what ends them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.errors import (
    FunctionSerializationError,
    JobExecutionError,
    RecordSerializationError,
    TaskFailure,
)
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction
from firesteel.spi.source import Boundedness, InputStatus, Source, SourceReader, SplitEnumerator

ROOT = Path(__file__).parents[2]
Env = Callable[..., StreamExecutionEnvironment]


@dataclass(frozen=True)
class Result:
    """A result class of the program itself."""

    number: int


def fail(env: StreamExecutionEnvironment) -> TaskFailure:
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    return caught.value.failure


# -- what crosses processes --------------------------------------------------------------------------------------------


def test_classes_of_the_program_come_back_as_they_were(spark_env: Env) -> None:
    stream = spark_env(2).from_collection([1, 2, 3, 4]).map(Result).rebalance()
    results = list(stream.map(lambda r: (isinstance(r, Result), r)).execute_and_collect())
    assert all(known for known, _result in results)
    assert {result for _known, result in results} == {Result(n) for n in (1, 2, 3, 4)}


def test_a_record_of_100_mb_crosses_slots_and_reaches_the_client(spark_env: Env) -> None:
    stream = spark_env(2).from_collection([1, 2]).map(lambda _: bytes(100_000_000)).rebalance()
    stream = stream.map(lambda data: data if os.getpid() else b"")
    assert [len(data) for data in stream.execute_and_collect()] == [100_000_000] * 2


def test_a_million_results_of_one_element(spark_env: Env) -> None:
    def million(_: int) -> Any:
        yield from range(1_000_000)

    stream = spark_env(2).from_collection([1]).flat_map(million).rebalance().filter(lambda x: x % 1000 == 0)
    assert sum(1 for _ in stream.execute_and_collect()) == 1000


def test_a_record_that_cannot_be_pickled_names_its_operator(spark_env: Env) -> None:
    env = spark_env(2)
    env.from_collection(range(4)).map(lambda _: threading.Lock()).name("locks").rebalance().map(str).print()
    failure = fail(env)
    assert (failure.error_type, failure.operator) == (RecordSerializationError.__name__, "locks")
    assert "lock" in str(failure.element)


def test_a_result_that_the_client_cannot_read_ends_the_job(spark_env: Env) -> None:
    class Unreadable:
        def __reduce__(self) -> Any:
            return int, ("not a number",)

    with pytest.raises(RecordSerializationError):
        list(spark_env(1).from_sequence(1, 1_000_000_000).map(lambda _: Unreadable()).execute_and_collect())


def test_a_function_that_cannot_be_pickled_starts_nothing(spark_env: Env) -> None:
    lock = threading.Lock()
    env = spark_env(1)
    env.from_collection([1]).map(lambda x: (lock, x)[1]).print()
    with pytest.raises(FunctionSerializationError):
        env.execute()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("firesteel-")] == []


def test_a_program_that_cannot_be_loaded_in_its_slots(spark_env: Env) -> None:
    here = types.ModuleType("only_in_this_process")
    exec("def function(x): return x", here.__dict__)
    sys.modules[here.__name__] = here
    try:
        env = spark_env(2)
        env.from_collection([1]).map(here.function).print()
        failure = fail(env)
    finally:
        del sys.modules[here.__name__]
    assert failure.error_type == "ModuleNotFoundError"
    assert here.__name__ in failure.message
    assert failure.hint is not None


class OwnSplit:
    """A split class of the program itself."""

    def __init__(self, number: int) -> None:
        self.split_id = str(number)


class OwnEnumerator(SplitEnumerator[Any]):
    def __init__(self, context: Any) -> None:
        self.context = context

    def start(self) -> None: ...

    def add_reader(self, subtask: int) -> None:
        self.context.assign_split(OwnSplit(subtask), subtask)
        self.context.signal_no_more_splits(subtask)

    def handle_split_request(self, subtask: int, host: str | None = None) -> None: ...

    def add_splits_back(self, splits: Any, subtask: int) -> None: ...

    def snapshot_state(self) -> Any: ...  # type: ignore[override]


class OwnReader(SourceReader[Any]):
    def __init__(self) -> None:
        self.splits: list[Any] = []
        self.complete = False

    def start(self) -> None: ...

    def add_splits(self, splits: Any) -> None:
        self.splits += splits

    def notify_no_more_splits(self) -> None:
        self.complete = True

    def poll_next(self, output: Any, max_records: int) -> InputStatus:
        if self.splits:
            split = self.splits.pop()
            output.collect(split.split_id, [isinstance(split, OwnSplit)])
            return InputStatus.MORE_AVAILABLE
        return InputStatus.END_OF_INPUT if self.complete else InputStatus.NOTHING_AVAILABLE

    def available_at(self) -> float | None:
        return None

    def snapshot_state(self) -> Any: ...  # type: ignore[override]


class OwnSource(Source[Any]):
    name = "own"

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: Any) -> OwnEnumerator:
        return OwnEnumerator(context)

    def restore_enumerator(self, context: Any, state: Any) -> OwnEnumerator:
        return OwnEnumerator(context)

    def create_reader(self, context: Any) -> OwnReader:
        return OwnReader()


def test_a_source_with_splits_of_the_programs_own(spark_env: Env) -> None:
    stream = spark_env(2).from_source(OwnSource(), WatermarkStrategy.no_watermarks(), "own")
    assert list(stream.execute_and_collect()) == [True, True]


# -- what ends processes -----------------------------------------------------------------------------------------------


def test_a_function_that_exits_its_process(spark_env: Env) -> None:
    env = spark_env(2)
    env.from_collection(range(4)).map(lambda x: sys.exit(x)).name("leaver").print()
    failure = fail(env)
    assert (failure.error_type, failure.operator) == ("SystemExit", "leaver")
    assert failure.user_file == __file__
    assert failure.hint is not None


def test_a_close_that_hangs_hides_no_cause(spark_env: Env) -> None:
    class Stubborn(MapFunction):
        has_failed = False

        def map(self, value: Any) -> Any:
            if value == 3:
                self.has_failed = True
                raise ValueError("the cause")
            return value

        def close(self) -> None:
            # one that has read all of its input would keep its slot from sending what others are to read
            if self.has_failed:
                time.sleep(3600)

    env = spark_env(2)
    env.from_collection(range(10)).map(Stubborn()).print()
    failure = fail(env)
    assert (failure.error_type, failure.message, failure.element) == ("ValueError", "the cause", "3")


# -- what is printed in them -------------------------------------------------------------------------------------------


def test_what_functions_print_reaches_the_terminal(spark_env: Env, capfd: pytest.CaptureFixture[str]) -> None:
    def chatty(value: int) -> int:
        print(f"out {value}")
        print(f"err {value}", file=sys.stderr)
        return value

    env = spark_env(2)
    env.from_sequence(1, 2000).map(chatty).filter(lambda _: False).print()
    env.execute()
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == sorted(f"out {i}" for i in range(1, 2001))
    assert sorted(err.splitlines()) == sorted(f"err {i}" for i in range(1, 2001))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"execution.runtime-mode": "BATCH"},
        {"execution.exchange": "spark", "restart-strategy.type": "none"},
    ],
    ids=["pipelined", "batch", "epochs"],
)
def test_what_functions_log_reaches_the_terminal(
    spark_env: Env, capfd: pytest.CaptureFixture[str], settings: Mapping[str, str]
) -> None:
    def logs(value: int) -> int:
        import logging

        log = logging.getLogger("my.rules")
        log.info("saw %d", value)
        log.debug("details of %d", value)
        if value == 3:
            log.error("cannot use %d", value)
            raise ValueError(value)
        return value

    env = spark_env(1, settings)
    env.from_collection([1, 2]).map(logs).filter(lambda _: False).print()
    env.execute()
    lines = capfd.readouterr().err.splitlines()
    task = "[Source: Collection Source -> Map -> Filter -> Sink: Print t… (1/1)#0]"
    assert [line[24:] for line in lines] == [
        f"INFO     my.rules {task} - saw 1",
        f"INFO     my.rules {task} - saw 2",
    ]
    program = logging.getLogger("my.rules")
    program.setLevel(logging.DEBUG)
    try:
        other = spark_env(1, {**settings, "env.log.level": "WARN", "env.log.format": "%(levelname)s %(message)s"})
        other.from_collection([3]).map(logs).print()
        assert fail(other).error_type == "ValueError"
    finally:
        program.setLevel(logging.NOTSET)
    # also what was logged before the failure
    assert capfd.readouterr().err.splitlines() == ["INFO saw 3", "DEBUG details of 3", "ERROR cannot use 3"]


def test_what_was_printed_before_the_failure_is_seen(spark_env: Env, capfd: pytest.CaptureFixture[str]) -> None:
    def last_words(value: int) -> int:
        print("last", end=" ")
        print("words", end="")
        raise ValueError(value)

    env = spark_env(1)
    env.from_collection([1]).map(last_words).print()
    assert fail(env).error_type == "ValueError"
    assert capfd.readouterr().out == "last words\n"


# -- a program of its own ----------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from helper import Wrapped

class Result:
    def __init__(self, number):
        self.number = number

def environment(master):
    configuration = Configuration().set_string("spark.master", master)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)

def divide(number):
    return 1 / (number - 3)

try:
    env = environment("local[nonsense]")
    env.from_collection([1]).print()
    env.execute()
except Exception as error:
    print(type(error).__name__, "nonsense" in error.message, len(error.message.splitlines()))

numbers = environment("local[2]").from_collection([1, 2]).map(Result).rebalance().map(Wrapped)
print(sorted(wrapped.value.number for wrapped in numbers.execute_and_collect() if type(wrapped.value) is Result))

env = environment("local[2]")
env.from_collection(range(10)).map(divide).print()
env.execute("dividing")
"""


@pytest.mark.spark
def test_a_program_as_a_user_runs_it(tmp_path: Path) -> None:
    """Spark that cannot start, classes of __main__ and of a module beside the script, and an error nobody catches."""
    (tmp_path / "elsewhere").mkdir()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("class Wrapped:\n    def __init__(self, value):\n        self.value = value\n")
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path / "elsewhere",
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["SparkStartError True 1", "[1, 2]"], done.stderr
    error = done.stderr.splitlines()
    assert error[0] == "Traceback (most recent call last):"
    assert done.stderr.count("Traceback") == 1
    assert len([line for line in error if line.startswith("  File ")]) == 2
    place = f"{program}:{PROGRAM.splitlines().index('    return 1 / (number - 3)') + 1}"
    assert any(place in line for line in error)
    assert error[-1].split() == ["element:", "3"]
    assert not list(tmp_path.glob("firesteel-spark-*"))
