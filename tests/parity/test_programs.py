"""PyFlink programs, unchanged: what they print here must be what they print with PyFlink.

``record.py`` has stored the latter. Lines are compared in any order.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common import Configuration
from firesteel.datastream.executor import PipelineExecutor, execution_context, spark_executor
from firesteel.testing.in_process import InProcessExecutor

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
NAMES = sorted(path.relative_to(PROGRAMS).with_suffix("").as_posix() for path in PROGRAMS.rglob("*.py"))


@pytest.fixture
def pyflink_names() -> Iterator[None]:
    """Lets ``import pyflink`` work in this process, for one test."""
    finders = list(sys.meta_path)
    importlib.import_module("firesteel.pyflink")
    yield
    sys.meta_path[:] = finders
    for module in [name for name in sys.modules if name.partition(".")[0] == "pyflink"] + ["firesteel.pyflink"]:
        del sys.modules[module]


def run_program(path: Path, executor: PipelineExecutor | None = None, **settings: str) -> list[str]:
    """Runs a program in this process and returns the lines that it printed, but empty ones."""
    printed = io.StringIO()
    with (
        execution_context(Configuration.from_dict(settings), executor or InProcessExecutor()),
        contextlib.redirect_stdout(printed),
    ):
        runpy.run_path(str(path), run_name="__main__")
    return [line for line in printed.getvalue().split("\n") if line]


def check(name: str, printed: list[str]) -> None:
    recorded = (HERE / "outputs" / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert sorted(printed) == recorded


ON_SPARK = ["functions/dependencies", "state/key_kinds", "types/sinks_of_typed_streams"]
"""Programs that are run on Spark too; those with dependencies only there."""


@pytest.mark.parametrize("name", [name for name in NAMES if name != "functions/dependencies"])
def test_it_prints_what_it_prints_with_pyflink(name: str, pyflink_names: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    check(name, run_program(PROGRAMS / f"{name}.py"))


@pytest.mark.parametrize("name", ON_SPARK)
def test_on_spark(name: str, pyflink_names: None, spark_context: object) -> None:
    check(name, run_program(PROGRAMS / f"{name}.py", spark_executor(), **{"spark.master": "local[4]"}))
