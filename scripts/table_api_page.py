"""The page docs/sql/api.md: PyFlink's Table API, method by method, and what there is of it."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

__all__ = ["TABLE_MODULES", "TABLE_NOTES", "table_api_page"]

TABLE_MODULES: dict[str, dict[str, dict[str, list[str]]]] = json.loads(
    (Path(__file__).parents[1] / "tests/unit/table/pyflink_api.json").read_text()
)
"""PyFlink's classes by module, with methods and parameters; ``(functions)`` are the functions of a module."""

TABLE_NOTES = {
    # what a method or class differs in, or why it is absent
    "catalog.HiveCatalog": "there is no Hive metastore client: use the `spark` catalog",
    "compiled_plan.CompiledPlan.as_smile_bytes": "refused: plans are JSON",
    "compiled_plan.CompiledPlan.get_flink_version": "the version of Firesteel",
    "descriptors.Rowtime": "deprecated in PyFlink: use `Schema.watermark`",
    "descriptors.Schema": "deprecated in PyFlink: use `pyflink.table.Schema`",
    "module.HiveModule": "there are no functions of Hive",
    "plan_reference.PlanReference.from_smile_bytes": "made, but not read: plans are JSON",
    "table_config.TableConfig.set_max_generated_code_length": "without effect",
    "table_config.TableConfig.set_sql_dialect": "takes `SqlDialect.DEFAULT` only",
    "types.UserDefinedType": "use rows, or `STRUCTURED` types in SQL",
    **{
        f"table_environment.TableEnvironment.{name}": "there is no Java behind the API"
        for name in ("create_java_function", "create_java_temporary_function", "create_java_temporary_system_function")
    },
}

_INTERNAL = re.compile(r"^(DataView|CatalogBaseTable\.get_schema)$|\.(Builder|mro)$|get_java_\w+$")
_PAGE = """\
# The Table API, method by method

<!-- Made by scripts/generate_docs.py from PyFlink's classes and Firesteel's own: change the code, not this page. -->

PyFlink 2.3's `pyflink.table`, and what `firesteel.table` has of it. **Done**: same name, parameters and behaviour.
**Differs**: available, with the differences listed below the table. **Absent**: not available. What the methods do is
described in [the Table API](table_api.md). Methods of a base class are listed with that class only.

{summary}

{modules}
"""


def table_api_page() -> str:
    """The text of docs/sql/api.md."""
    sections, totals = [], []
    for module, classes in TABLE_MODULES.items():
        notes: dict[str, str] = {}
        rows = {name: _compare(module, name, methods, notes) for name, methods in classes.items()}
        totals.append((module, [sum(len(columns[index]) for columns in rows.values()) for index in range(3)]))
        lines = ["| class | done | differs | absent |", "|---|---|---|---|"]
        lines += (
            f"| {_cell(name)} | {' | '.join(', '.join(part) or '–' for part in row)} |" for name, row in rows.items()
        )
        explained = [f"- `{name}`: {note}" for name, note in notes.items()]
        sections.append("\n".join([f"## {module}", "", *lines, *(["", *explained] if explained else [])]))
    summary = ["| module | done | differs | absent |", "|---|---:|---:|---:|"]
    summary += (f"| [{name}](#{name}) | {' | '.join(map(str, counts))} |" for name, counts in totals)
    whole = [sum(counts[index] for _, counts in totals) for index in range(3)]
    summary.append(f"| **all** | {' | '.join(f'**{count}**' for count in whole)} |")
    return _PAGE.format(summary="\n".join(summary), modules="\n\n".join(sections))


def _cell(name: str) -> str:
    return "functions" if name == "(functions)" else f"`{name}`"


def _compare(module: str, name: str, methods: dict[str, list[str]], notes: dict[str, str]) -> tuple[list[str], ...]:
    """What is done, differs and is absent of a class."""
    done: list[str] = []
    differs: list[str] = []
    absent: list[str] = []
    columns = (done, differs, absent)
    found = _found(module, name)
    note = TABLE_NOTES.get(f"{module}.{name}")
    if note:
        notes[name] = note
    if found is None or not methods:
        (absent if found is None else differs if note else done).append("the class")
        return columns
    for method, parameters in _own(module, name, methods).items():
        full = method if name == "(functions)" else f"{name}.{method}"
        if _INTERNAL.search(full):
            continue
        known = TABLE_NOTES.get(f"{module}.{full}")
        if not hasattr(found, method):
            absent.append(f"`{method}`")
        elif known or note:
            differs.append(f"`{method}`")
        elif not _takes(getattr(found, method), parameters):
            differs.append(f"`{method}`")
            known = "takes other parameters"
        else:
            done.append(f"`{method}`")
        if known:
            notes[full] = known
    return columns


def _own(module: str, name: str, methods: dict[str, list[str]]) -> dict[str, list[str]]:
    """The methods that the class does not have from another one of the page."""
    bases = {"StreamTableEnvironment": "TableEnvironment", "ResolvedExpression": "Expression"}
    base = bases.get(name)
    if base is None:
        return methods
    inherited = TABLE_MODULES["expression" if base == "Expression" else module][base]
    return {
        method: parameters for method, parameters in methods.items() if method not in inherited or method == "create"
    }


def _found(module: str, name: str) -> Any:
    try:
        imported = importlib.import_module(f"firesteel.table.{module}")
    except ModuleNotFoundError:
        return None
    return imported if name == "(functions)" else getattr(imported, name, None)


def _takes(method: Any, parameters: list[str]) -> bool:
    if not parameters or not callable(method):
        return True
    names = [name for name in inspect.signature(method).parameters if name != "self"]
    return names[: len(parameters)] == parameters
