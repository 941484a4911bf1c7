"""PyFlink's module names in a process of their own, as a program asks for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.common.typeinfo import RowTypeInfo
from pyflink.datastream import MapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource
from pyflink.datastream.functions import RuntimeContext
import pyflink.datastream.window as window


class Double(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        from pyflink.metrics import Counter

        self.count = runtime_context.get_metrics_group().counter("doubled")
        assert isinstance(self.count, Counter)

    def map(self, value):
        self.count.inc()
        return Row(value, 2 * value)


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_collection([1, 2], Types.INT()).map(Double(), Types.ROW([Types.INT(), Types.INT()])).print()
env.execute("doubles")
"""


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=directory, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_modules_are_those_of_firesteel(tmp_path: Path) -> None:
    code = (
        "import firesteel.pyflink, sys\n"
        "import pyflink.datastream.functions, firesteel.datastream.functions, pyflink.metrics\n"
        "assert pyflink.datastream.functions is firesteel.datastream.functions\n"
        "assert pyflink.datastream.functions.__spec__.name == 'firesteel.datastream.functions'\n"
        "import pickle\n"
        "assert pickle.loads(pickle.dumps(pyflink.metrics.Counter)) is firesteel.metrics.Counter\n"
    )
    done = run("-c", code, directory=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_command_line_runs_programs_of_pyflink(tmp_path: Path) -> None:
    (tmp_path / "doubles.py").write_text(PROGRAM)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom firesteel.cli.main import main\nsys.exit(main())"
    done = run("-c", code, "info", "--pyflink", "doubles.py", directory=tmp_path)
    assert done.stdout.startswith("Job 'doubles': "), done.stderr


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("pyflink.nothing", "Firesteel has no module 'pyflink.nothing'."),
        ("pyflink.datastream.nothing.more", "Firesteel has no module 'pyflink.datastream.nothing'."),
        ("pyflink.java_gateway", "There is no JVM to call: use the Python API."),
    ],
)
def test_a_module_that_is_missing_is_an_error_of_the_import(module: str, message: str) -> None:
    done = run("-c", f"import firesteel.pyflink\nimport {module}", directory=ROOT)
    assert message in done.stderr
    assert "ModuleNotFoundError" in done.stderr


def test_after_pyflink_itself_it_is_too_late(tmp_path: Path) -> None:
    (tmp_path / "pyflink.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nimport pyflink\nimport firesteel.pyflink"
    done = run("-c", code, directory=tmp_path)
    assert "Import firesteel.pyflink before any module of PyFlink." in done.stderr


def test_without_it_the_names_are_not_taken(tmp_path: Path) -> None:
    done = run("-c", "import firesteel.datastream\nimport pyflink.datastream", directory=ROOT)
    assert "No module named 'pyflink'" in done.stderr
