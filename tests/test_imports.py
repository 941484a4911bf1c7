"""The direction of imports, and that the API neither imports nor starts Spark."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "firesteel"

VOCABULARY = {"common", "config", "types", "api", "process"}

LAYERS: dict[str, set[str]] = {
    "common": VOCABULARY - {"types"},
    "config": VOCABULARY,
    "types": VOCABULARY,
    "api": VOCABULARY,
    "process": VOCABULARY,
    "spi": VOCABULARY,
    "filesystem": VOCABULARY,
    "runtime": {"filesystem", "spi", *VOCABULARY},
    "metrics": {"runtime", *VOCABULARY},
    "graph": {"runtime", "spi", *VOCABULARY},
    "table": {"cep", "datastream", "graph", "runtime", "connectors", "formats", "filesystem", "spi", *VOCABULARY},
    "formats": {"filesystem", "spi", *VOCABULARY},
    "connectors": {"formats", "filesystem", "spi", *VOCABULARY},
    "datastream": {"graph", "runtime", "connectors", "formats", "metrics", "spi", *VOCABULARY},
    "cep": {"datastream", "graph", "runtime", "spi", *VOCABULARY},
    "jobmaster": {"graph", "runtime", "filesystem", "spi", *VOCABULARY},
    "execution": {"jobmaster", "graph", "runtime", "filesystem", "spi", *VOCABULARY},
    "savepoint": {"jobmaster", "graph", "runtime", "filesystem", "spi", *VOCABULARY},
    "spark": {
        "savepoint",
        "execution",
        "jobmaster",
        "graph",
        "runtime",
        "filesystem",
        "connectors",
        "formats",
        "spi",
        *VOCABULARY,
    },
    "rest": VOCABULARY,
    "client": {"rest", "datastream", "jobmaster", "graph", "runtime", "filesystem", "spi", *VOCABULARY},
    "gateway": {"table", "datastream", "graph", "runtime", "formats", "filesystem", "spi", *VOCABULARY},
    "cluster": {
        "gateway",
        "rest",
        "client",
        "savepoint",
        "spark",
        "datastream",
        "execution",
        "jobmaster",
        "graph",
        "runtime",
        "filesystem",
        "spi",
        *VOCABULARY,
    },
    "cli": {"client", "rest", "savepoint", "table", "datastream", "graph", "runtime", "filesystem", "spi", *VOCABULARY},
    "testing": {
        "cep",  # generated programs have patterns
        "table",  # and queries
        "datastream",
        "execution",
        "jobmaster",
        "graph",
        "runtime",
        "filesystem",
        "connectors",
        "formats",
        "metrics",
        "spi",
        *VOCABULARY,
    },
    "testing/simulation": {
        "testing",
        "cluster",
        "spark",
        "datastream",
        "execution",
        "jobmaster",
        "graph",
        "runtime",
        "filesystem",
        "connectors",
        "formats",
        "spi",
        *VOCABULARY,
    },
}
"""What each package may import, besides itself and the root."""

MODULE_NAME = re.compile(r"firesteel(\.\w+)+")

BY_NAME = {
    ("__main__.py", "cli"),
    ("client/cluster_processes.py", "cluster"),  # what a new process is to run
    ("client/gateway_process.py", "cluster"),
    ("datastream/executor.py", "spark"),  # loaded when a program is executed, not before
    ("datastream/dataframes.py", "spark"),  # loaded when a program has to do with a DataFrame
    ("table/environment/results/spark.py", "spark"),  # loaded when a bounded query runs on Spark
    ("table/environment/spark_tables.py", "spark"),  # loaded by a catalog of Spark
    ("runtime/failure/failure_place.py", "connectors"),  # looked for in tracebacks, never imported
    ("formats/bad_records.py", "connectors"),  # the name under which its records are stored
    ("pyflink.py", "process"),
    *(("moved_modules.py", package) for package in LAYERS),  # where modules have gone, which it imports on demand
}
"""Modules known by name only, across the layers."""


TYPE_INFORMATION = {
    "firesteel.types.logical",
    "firesteel.types.type_information",
    "firesteel.types.composite_type_information",
}
"""What ``common.typeinfo`` exports: the face of logical types in the API."""


def _is_face(place: str, module: str) -> bool:
    return place == "common/typeinfo.py" and module in TYPE_INFORMATION


def _imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            if node.module == "firesteel":
                yield from ((f"firesteel.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module, node.lineno
        elif isinstance(node, ast.Constant) and MODULE_NAME.fullmatch(str(node.value)):
            # for importlib.import_module
            yield str(node.value), node.lineno


def _files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def violations(file: Path, text: str) -> list[str]:
    """Imports of a file, given by its place in the package, that go against the direction."""
    place = file.relative_to(PACKAGE).as_posix()
    layer = next((name for name in LAYERS if "/" in name and place.startswith(f"{name}/")), place.split("/")[0])
    found = []
    for name, line in _imports(ast.parse(text)):
        parts = name.split(".")
        if parts[0] in ("pyspark", "py4j") and layer != "spark":
            found.append(f"firesteel/{place}:{line} imports {name}")
        if parts[0] == "argparse" and layer == "client":
            found.append(f"firesteel/{place}:{line} imports {name}")
        if parts[0] != "firesteel" or len(parts) == 1 or parts[1] not in LAYERS:
            continue
        if ".".join(parts[1:]).startswith(layer.replace("/", ".")) or _is_face(place, name):
            continue
        if parts[1] != layer and parts[1] not in LAYERS.get(layer, set()) and (place, parts[1]) not in BY_NAME:
            found.append(f"firesteel/{place}:{line} imports {name}")
    return found


def test_imports_point_one_way() -> None:
    found = [violation for file in _files() for violation in violations(file, file.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


def test_operators_import_no_state_backend() -> None:
    backends = ("firesteel.runtime.state.hashmap", "firesteel.runtime.state.rocksdb")
    found = [
        f"{file}:{line} imports {name}"
        for file in sorted((PACKAGE / "runtime" / "operators").rglob("*.py"))
        for name, line in _imports(ast.parse(file.read_text(encoding="utf-8")))
        if name.startswith(backends)
    ]
    assert not found, "\n".join(found)


def test_the_logical_types_know_neither_type_information_nor_any_other_module() -> None:
    known = {
        module
        for name in ("logical_type", "logical", "python")
        for module, _ in _imports(ast.parse((PACKAGE / f"types/{name}.py").read_text(encoding="utf-8")))
    }
    own = {module for module in known if module.startswith("firesteel")}
    assert own == {"firesteel.types.logical_type", "firesteel.types.logical", "firesteel.common.time"}


def test_every_package_has_a_layer() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    named = {name for name in LAYERS if "/" not in name}
    assert packages == named, "say in LAYERS in tests/test_imports.py what the package may import"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("runtime/x.py", "from firesteel.datastream import DataStream"),
        ("common/typeinfo.py", "from firesteel.types.arrow import to_arrow_schema"),
        ("common/time.py", "from firesteel.types.logical import LogicalType"),
        ("types/x.py", "from firesteel.formats.csv.schema import CsvSchema"),
        ("runtime/x.py", "def f():\n    import firesteel.graph.plan"),
        ("common/x.py", "from firesteel import runtime"),
        ("graph/x.py", "from firesteel.jobmaster.model.story import Story"),
        ("connectors/x.py", "from firesteel.runtime.model.elements import Batch"),
        ("testing/x.py", "from firesteel.spark.pipelined.host import SparkHost"),
        ("jobmaster/x.py", "import pyspark"),
        ("datastream/x.py", "import_module('firesteel.spark.executor')"),
        ("client/x.py", "import argparse"),
        ("cluster/x.py", "from firesteel.cli.run import run"),
    ],
)
def test_an_import_against_the_direction_is_found(file: str, text: str) -> None:
    assert len(violations(PACKAGE / file, text)) == 1


def _python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module",
    [
        "firesteel",
        "firesteel.common",
        "firesteel.datastream",
        "firesteel.cep",
        "firesteel.connectors",
        "firesteel.testing",
    ],
)
def test_importing_the_api_does_not_import_or_start_anything(module: str) -> None:
    code = f"""
import os, sys, threading
before = set(os.listdir("/proc/self/fd"))
import {module}
heavy = sorted(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "pytest", "hypothesis"))
files = set(os.listdir("/proc/self/fd")) - before
print(heavy, threading.active_count(), len(files))
"""
    assert _python(code) == "[] 1 0"


def test_building_a_program_does_not_import_spark() -> None:
    code = """
import sys
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).map(lambda x: x + 1).key_by(lambda x: x).sum().print()
env.get_execution_plan()
print("pyspark" in sys.modules)
"""
    assert _python(code) == "False"


def test_what_a_job_needs_after_spark_is_imported_while_the_jvm_starts() -> None:
    code = """
import sys
import firesteel.spark.executor as executor
late = ("firesteel.jobmaster.shell.runner", "firesteel.spark.host_creation")
before = [name in sys.modules for name in late]
executor._import_hosts()
print(before, [name in sys.modules for name in late])
"""
    assert _python(code) == "[False, False] [True, True]"


def test_every_module_of_the_vocabulary_can_be_imported_first() -> None:
    """Pickles import modules in any order."""
    names = [
        ".".join(("firesteel", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for package in sorted(VOCABULARY | {"spi"})
        for file in sorted((PACKAGE / package).rglob("*.py"))
    ]
    code = f"""
import importlib, sys
for name in {names}:
    for loaded in [each for each in sys.modules if each.startswith("firesteel")]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""
    assert _python(code) == ""
