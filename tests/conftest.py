"""What all tests share: one embedded Spark, the leak check, and the order in which tests run."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing.in_process import InProcessExecutor
from tests.support.leak_check import no_leaks  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[1]
Settings = Mapping[str, str]
Env = Callable[..., StreamExecutionEnvironment]

NO_SETTINGS: Settings = {}

FOLDER_MARKS = {ROOT / "tests" / name: name for name in ("unit", "integration", "services")}
SPARK_SLOTS = 4
"""Parallelism 1, 2 and 3, and one slot more for a second slot sharing group."""

# a busy machine is no failure, and what is tested is the same each time; with --hypothesis-profile=search it is not
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("firesteel", settings.get_profile("search"), derandomize=True)
settings.load_profile("firesteel")

_temporary: Path | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the jobs under tests/jobs give in process, at parallelism 1, to tests/golden",
    )


def pytest_configure(config: pytest.Config) -> None:
    # a temporary directory of the tests' own: whatever appears in it was left by them
    global _temporary
    _temporary = Path(tempfile.mkdtemp(prefix="tests-"))
    tempfile.tempdir = os.environ["TMPDIR"] = str(_temporary)
    gc.disable()  # until all modules are imported: hardly anything of them is garbage


def pytest_unconfigure(config: pytest.Config) -> None:
    if _temporary is not None:
        shutil.rmtree(_temporary, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Prints how to repeat a run that failed: its order, and what ``random`` returned in each test."""
    seed = getattr(config.option, "randomly_seed", None)
    if exitstatus == pytest.ExitCode.TESTS_FAILED and seed is not None:
        terminalreporter.write_line(
            f"To repeat the order of the tests and their random numbers: --randomly-seed={seed}"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs Spark, or a server; what needs no Spark runs first, what needs a cluster last."""
    for item in items:
        for folder, mark in FOLDER_MARKS.items():
            if folder in item.path.parents:
                item.add_marker(mark)
    for item in items:
        if "spark_context" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: ("spark" in item.keywords) + 2 * ("cluster" in item.keywords))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Modules and tests stay to the end: to look at them in each collection would take a fifth of a short test."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def in_process_env() -> Env:
    """Makes environments whose jobs run in a thread of this process: ``in_process_env(parallelism)``."""

    def make(parallelism: int = 1, configuration: Settings = NO_SETTINGS) -> StreamExecutionEnvironment:
        env = _environment(parallelism, configuration)
        env._executor = InProcessExecutor()
        return env

    return make


@pytest.fixture
def spark_env(spark_context: object) -> Env:
    """Makes environments whose jobs run on the shared embedded Spark: ``spark_env(parallelism, {key: value})``."""

    def make(parallelism: int = 1, configuration: Settings = NO_SETTINGS) -> StreamExecutionEnvironment:
        return _environment(parallelism, {"spark.master": f"local[{SPARK_SLOTS}]", **configuration})

    return make


def _environment(parallelism: int, configuration: Settings) -> StreamExecutionEnvironment:
    config = Configuration()
    for key, value in configuration.items():
        config.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)


@pytest.fixture(scope="session")
def spark_context() -> Iterator[object]:
    """The one embedded Spark of the session."""
    from firesteel.spark.session.session import get_spark_context, stop_spark_context

    config = Configuration().set_string("spark.master", f"local[{SPARK_SLOTS}]")
    yield get_spark_context(config, SPARK_SLOTS)
    stop_spark_context()
