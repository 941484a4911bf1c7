"""Writes pyflink_api.json: PyFlink's classes and methods with their parameter names, read from its source.

Usage: python make_pyflink_api.py <site-packages>/pyflink/datastream
"""

import ast
import json
import sys
from pathlib import Path

MODULES = (
    "async_data_stream",
    "async_retry_strategies",
    "checkpoint_config",
    "checkpoint_storage",
    "checkpointing_mode",
    "connectors/base",
    "connectors/file_system",
    "connectors/hybrid_source",
    "connectors/jdbc",
    "connectors/kafka",
    "connectors/number_seq",
    "data_stream",
    "execution_mode",
    "externalized_checkpoint_retention",
    "formats/avro",
    "formats/csv",
    "formats/json",
    "formats/orc",
    "formats/parquet",
    "functions",
    "output_tag",
    "slot_sharing_group",
    "state",
    "state_backend",
    "stream_execution_environment",
    "time_domain",
    "timerservice",
    "window",
)


def is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def parameters(function):
    args = function.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)
    names = names if static else names[1:]
    if args.vararg:
        names.append(f"*{args.vararg.arg}")
    if args.kwarg:
        names.append(f"**{args.kwarg.arg}")
    return names


def describe(node, prefix, api):
    name = f"{prefix}{node.name}"
    methods = api[name] = {}
    for item in node.body:
        if isinstance(item, ast.ClassDef) and is_public(item.name):
            describe(item, f"{name}.", api)
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_public(item.name):
            methods[item.name] = parameters(item)


def main(root):
    api = {}
    for module in MODULES:
        classes = api[module.replace("/", ".")] = {}
        for node in ast.parse((root / f"{module}.py").read_text()).body:
            if isinstance(node, ast.ClassDef) and is_public(node.name):
                describe(node, "", classes)
    target = Path(__file__).with_name("pyflink_api.json")
    target.write_text(json.dumps(api, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
