"""test_environment, collect and eventually."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import firesteel.testing
from firesteel.common import Configuration
from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.testing import collect, eventually, test_environment


def test_it_is_an_ordinary_environment() -> None:
    configuration = Configuration()
    configuration.set_string("pipeline.name", "mine")
    env = test_environment(3, configuration)
    assert type(env) is StreamExecutionEnvironment
    assert env.get_parallelism() == 3
    assert env.get_configuration().get_string("pipeline.name", "") == "mine"
    assert test_environment().get_parallelism() == 1


def test_pytest_does_not_take_the_kit_for_tests(pytestconfig: Any, tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(
        "from firesteel.testing import *\ndef test_it():\n    assert test_environment().get_parallelism() == 1\n"
    )
    root = Path(firesteel.__file__).parents[1]
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--collect-only", "-q", tmp_path],
        capture_output=True,
        text=True,
        cwd=root,
        check=False,
    )
    assert listed.returncode == 0, listed.stdout
    assert [line for line in listed.stdout.splitlines() if "::" in line] == ["test_user.py::test_it"] or (
        listed.stdout.count("::") == 1
    ), listed.stdout


def test_the_kit_does_not_load_spark() -> None:
    root = Path(firesteel.__file__).parents[1]
    code = "import sys, firesteel.testing; sys.exit(any(m.startswith('pyspark') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_all_that_is_exported_is_documented() -> None:
    for name in firesteel.testing.__all__:
        assert getattr(firesteel.testing, name).__doc__, name


class Remember(MapFunction):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def map(self, value: int) -> int:
        self.seen.append(value)
        return len(self.seen)


def test_each_subtask_has_its_own_copy_of_a_function() -> None:
    function = Remember()
    counts = collect(test_environment(2).from_sequence(1, 4).map(function))
    assert sorted(counts) == [1, 1, 2, 2]
    assert function.seen == []


def test_collect_stops_at_a_limit() -> None:
    assert collect(test_environment().from_sequence(1, 10**12), limit=3) == [1, 2, 3]


def test_eventually_returns_what_finally_holds() -> None:
    numbers = itertools.count()

    def third() -> int:
        number = next(numbers)
        assert number >= 2
        return number

    assert eventually(third, interval=0) == 2
    assert eventually(lambda: None) is None


def test_eventually_gives_up_with_the_last_failure() -> None:
    numbers = itertools.count()

    def never() -> None:
        assert next(numbers) < 0, "still positive"

    with pytest.raises(AssertionError, match=r"not so within 0\.02 s: still positive"):
        eventually(never, timeout=0.02, interval=0.001)
    assert next(numbers) >= 1
    with pytest.raises(AssertionError, match="returned False"):
        eventually(lambda: False, timeout=0)
    with pytest.raises(AssertionError, match=r"returned \[\]"):
        eventually(list, timeout=0)


def test_eventually_does_not_swallow_other_errors() -> None:
    with pytest.raises(ZeroDivisionError):
        eventually(lambda: 1 / 0)
