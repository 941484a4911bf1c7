from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import firesteel.common

PYFLINK_NAMES = [
    "Configuration",
    "ConfigOption",
    "ConfigOptions",
    "ExecutionConfig",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "SerializationSchema",
    "DeserializationSchema",
    "SimpleStringSchema",
    "ByteArraySchema",
    "Encoder",
    "CompletableFuture",
    "InputDependencyConstraint",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "WatermarkStrategy",
    "Duration",
    "Instant",
    "Time",
    "AssignerWithPeriodicWatermarksWrapper",
]

PYFLINK_MODULES = [
    "completable_future",
    "config_options",
    "configuration",
    "constants",
    "execution_config",
    "input_dependency_constraint",
    "io",
    "job_client",
    "job_execution_result",
    "job_id",
    "job_status",
    "restart_strategy",
    "serialization",
    "serializer",
    "time",
    "typeinfo",
    "types",
    "watermark_strategy",
]


@pytest.mark.parametrize("name", PYFLINK_NAMES)
def test_every_name_of_pyflink_common_is_there(name):
    assert name in firesteel.common.__all__
    assert getattr(firesteel.common, name) is not None


@pytest.mark.parametrize("name", PYFLINK_MODULES)
def test_every_module_of_pyflink_common_is_there(name):
    importlib.import_module(f"firesteel.common.{name}")


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(firesteel.common.__path__)])
def test_docstring_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(f"firesteel.common.{name}"))
    assert failed == 0


def test_common_imports_neither_spark_nor_the_layers_above():
    program = (
        "import sys, firesteel.common\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')"
        " or m.split('.')[1:2] in (['graph'], ['runtime'], ['connectors'], ['datastream'], ['jobmaster'])])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
