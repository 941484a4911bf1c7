"""The folders of the package: their sizes, the direction of imports between subpackages, and folders without I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "firesteel"
MAX_MODULES = 20
LARGER = {"table": 34}
"""Folders that have a module for each of PyFlink's, and how many modules they may have."""

ORDERS = {
    "runtime": (
        "model",
        "columns",
        "time",
        "codegen",
        "checkpoint",
        "network",
        "state/api",
        "state/hashmap",
        "state/rocksdb",
        "state/single_key",
        "state/columnar",
        "state",
        "operators",
        "operators/aggregation",
        "operators/async_wait",
        "operators/columns",
        "operators/window",
        "chain",
        "failure",
        "task",
        "dependencies",
        "slot",
    ),
    "jobmaster": ("model", "sources", "slots", "checkpoints", ".", "view", "shell"),
    "execution": ("stages", "batch", "epochs"),
    "connectors": (
        "base",
        "generators",
        "client",
        "files",
        "hybrid",
        "lakes",
        "iceberg",
        "delta",
        "kafka",
        "kafka/source",
        "kafka/sink",
        "postgres",
        "postgres/source",
        "postgres/sink",
        "postgres/cdc",
    ),
    "formats": (".", "json", "text", "csv", "avro", "writers", "parquet", "orc"),
    "cep": ("pattern", "nfa", "."),
    "table": (
        ".",
        "catalog",
        "parser",
        "parser/statements",
        "parser/grammar",
        "bound",
        "inference",
        "values",
        "casts",
        "functions/spark",
        "functions",
        "functions/strings",
        "functions/aggregates",
        "user_functions",
        "evaluation",
        "connector",
        "plan",
        "plan/match",
        "spark_sql",
        "binder/table_functions",
        "binder",
        "binder/match",
        "binder/ddl",
        "rules",
        "rules/times",
        "rules/joins",
        "rules/windows",
        "compiled",
        "runtime",
        "runtime/operators",
        "runtime/operators/joins",
        "runtime/operators/aggregate",
        "runtime/operators/ranks",
        "runtime/operators/process",
        "runtime/operators/windows",
        "runtime/operators/over",
        "runtime/operators/match",
        "connectors",
        "formats",
        "formats/json",
        "formats/csv",
        "formats/changes",
        "connectors/nexmark",
        "connectors/datagen",
        "connectors/filesystem",
        "connectors/lakes",
        "connectors/iceberg",
        "connectors/delta",
        "connectors/kafka",
        "connectors/postgres",
        "connectors/models",
        "translate",
        "dsl",
        "environment/planning",
        "environment/results",
        "environment/statements",
        "environment",
    ),
    "spark": ("session", "pipelined", "blocking", "dataframes", "state_processor", "."),
    "cluster": ("ha", "rest", "dispatcher", "diagnostics", "rest/handlers", "."),
}
"""Subpackages from the bottom to the top: each imports only those before it."""

UPWARD = {
    # factory methods of Flink's API
    ("formats/stream_format.py", "formats/text"),
    # entry points of the parser
    ("table/parser/dialect.py", "table/parser/statements"),
    ("table/parser/dialect.py", "table/parser/grammar"),
    ("table/parser/scripts.py", "table/parser/statements"),
    ("table/parser/scripts.py", "table/parser/grammar"),
    ("table/parser/hints.py", "table/parser/statements"),
    # tables of FROM
    ("table/binder/from_clause.py", "table/binder/match"),
    # the order of all rules
    ("table/rules/optimizer.py", "table/rules/times"),
    ("table/rules/optimizer.py", "table/rules/windows"),
    # PyFlink's names of modules
    ("table/expression.py", "table/dsl"),
    ("table/expressions.py", "table/dsl"),
    ("table/window.py", "table/dsl"),
    ("table/udf.py", "table/user_functions"),
    # a function that is called makes an expression
    ("table/user_functions/wrappers.py", "table/dsl"),
    ("table/statement_set.py", "table/environment"),
    ("table/table.py", "table/environment"),
    ("table/table_environment.py", "table/environment"),
    ("table/table_result.py", "table/environment/results"),
    ("table/table_pipeline.py", "table/environment"),
    ("table/resolved_expression.py", "table/bound"),
    ("table/compiled_plan.py", "table/environment/statements"),
    ("table/module.py", "table/catalog"),
    # the order of all rules
    ("table/rules/optimizer.py", "table/rules/joins"),
}
"""Imports against the order."""

PURE = (
    "api",
    "spi",
    "graph",
    "runtime/model",
    "runtime/codegen",
    "runtime/time",
    "jobmaster/model",
    "jobmaster/sources",
    "jobmaster/slots",
    "jobmaster/checkpoints",
    "jobmaster/view",
    "jobmaster",
    "cep/pattern",
    "cep/nfa",
    "table/catalog",
    "table/parser",
    "table/parser/statements",
    "table/parser/grammar",
    "table/bound",
    "table/inference",
    "table/values",
    "table/casts",
    "table/functions/spark",
    "table/functions",
    "table/functions/strings",
    "table/functions/aggregates",
    "table/evaluation",
    "table/plan",
    "table/plan/match",
    "table/spark_sql",
    "table/binder/table_functions",
    "table/binder",
    "table/binder/match",
    "table/binder/ddl",
    "table/connector",
    "table/rules",
    "table/rules/joins",
    "table/rules/windows",
    "table/compiled",
    "table/translate",
)
"""Folders without I/O, threads and clocks of their own; not their subfolders."""

IMPURE = {
    "asyncio",
    "concurrent",
    "multiprocessing",
    "os",
    "pathlib",
    "queue",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
}
EXCUSED = {
    ("runtime/model/metrics.py", "time"),  # meters have the clock as their default
    ("jobmaster/model/failure.py", "pathlib"),  # shortens paths in texts
}


def _folder(file: Path) -> str:
    return file.parent.relative_to(PACKAGE).as_posix()


def _files() -> list[Path]:
    return [file for file in sorted(PACKAGE.rglob("*.py")) if file.parent != PACKAGE]


def _imported(text: str) -> Iterator[str]:
    """The modules that a text imports, also within functions and for type checking."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _folder_of_import(name: str) -> str | None:
    """The folder of what is imported, if that is in the package."""
    parts = name.split(".")
    if parts[0] != "firesteel":
        return None
    path = PACKAGE
    for part in parts[1:]:
        if not (path / part).is_dir():
            break
        path /= part
    return path.relative_to(PACKAGE).as_posix()


def upward_imports(file: Path, text: str) -> list[str]:
    """Imports of a module, given by its place, of subpackages that are above its own."""
    place, folder = file.relative_to(PACKAGE).as_posix(), _folder(file)
    package = folder.split("/")[0]
    order = ORDERS.get(package)
    if order is None:
        return []
    ranks = {(package if name == "." else f"{package}/{name}"): rank for rank, name in enumerate(order)}
    found = []
    for name in _imported(text):
        target = _folder_of_import(name)
        if target is None or target not in ranks or target == folder or file.name == "__init__.py":
            continue
        if ranks[target] > ranks[folder] and (place, target) not in UPWARD:
            found.append(f"firesteel/{place} imports {name}")
    return found


def test_no_folder_is_large() -> None:
    sizes = {folder: len([f for f in folder.glob("*.py") if f.stem != "__init__"]) for folder in PACKAGE.rglob("*")}
    named = {folder.relative_to(PACKAGE).as_posix(): size for folder, size in sizes.items()}
    large = {folder: size for folder, size in named.items() if size > LARGER.get(folder, MAX_MODULES)}
    assert not large, f"a folder has at most {MAX_MODULES} modules: divide it by what they are about"


@pytest.mark.parametrize("package", ORDERS)
def test_every_subpackage_is_in_the_order(package: str) -> None:
    root = PACKAGE / package
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    packages = {
        folder.relative_to(root).as_posix()
        for folder in folders
        if any(file.stem != "__init__" for file in folder.glob("*.py"))
    }
    assert packages == set(ORDERS[package]), "put the folder in its place in ORDERS in tests/test_floor_plan.py"


def test_subpackages_import_only_those_below() -> None:
    found = [each for file in _files() for each in upward_imports(file, file.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("runtime/model/x.py", "from firesteel.runtime.slot.task_executor import TaskExecutor"),
        ("runtime/state/api/x.py", "def f():\n    from firesteel.runtime.state.hashmap import backend"),
        ("jobmaster/checkpoints/x.py", "import firesteel.jobmaster.shell.runner"),
    ],
)
def test_an_upward_import_is_found(file: str, text: str) -> None:
    assert len(upward_imports(PACKAGE / file, text)) == 1


def test_pure_folders_import_no_io() -> None:
    found = []
    for file in _files():
        if _folder(file) not in PURE:
            continue
        place = file.relative_to(PACKAGE).as_posix()
        for name in _imported(file.read_text(encoding="utf-8")):
            top = name.split(".")[0]
            if (top in IMPURE or name.startswith("firesteel.filesystem")) and (place, top) not in EXCUSED:
                found.append(f"firesteel/{place} imports {name}")
    assert not found, "\n".join(found)
