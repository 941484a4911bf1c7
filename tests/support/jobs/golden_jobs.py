"""Runs the jobs under tests/jobs and says what they gave, in the form of the golden files.

A job is a module with ``build(env)``, which returns the stream to look at. It may also have

- ``key_of(result)``: the results of one key come in a fixed order, and that order counts;
- ``results(directory)``: the lines to look at, for a job that writes files beneath the directory in its job parameters;
- ``ACCUMULATORS``: what the job's result must say of these accumulators;
- ``BATCH_ACCUMULATORS``: those that are others if the job runs as a batch;
- ``STREAMING_ONLY``: the job cannot run as a batch;
- ``after_restore(line)``: what must be the same of a line if the job was stopped and restored in between.
"""

from __future__ import annotations

import importlib.util
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["GOLDEN", "JOB_NAMES", "STAGE_JOBS", "load_job", "read_golden", "run_job"]

JOBS = Path(__file__).parents[2] / "jobs"
GOLDEN = Path(__file__).parents[2] / "golden"
JOB_NAMES = sorted(path.stem for path in JOBS.glob("*.py"))
STAGE_JOBS = [
    "async_io",
    "broadcast_state",
    "columns",
    "dynamic_patterns",
    "event_time_timers",
    "late_data",
    "partitioning",
    "pre_aggregation",
    "ranked_rows",
    "rich_functions",
    "running_aggregates",
    "session_windows",
    "sql_joins",
    "text_files",
    "typed_records",
    "union_of_streams",
    "window_join",
]
"""Jobs that have every kind of exchange, input, record, state and result in their stages on Spark. All jobs run in the
same stages in process: only what carries records from one stage to the next differs."""
DEADLINE_S = 240


def load_job(name: str) -> ModuleType:
    """The job's module. What it defines travels to the slots by value, like a program's main module."""
    module_name = f"golden_job_{name}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, JOBS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
        cloudpickle.register_pickle_by_value(module)
    return sys.modules[module_name]


def run_job(name: str, env: StreamExecutionEnvironment, directory: Path) -> tuple[list[str], dict[str, Any]]:
    """The job's results as the golden file has them, and the accumulators the job says something about."""
    job = load_job(name)
    env.get_config().set_global_job_parameters({"directory": str(directory)})
    stream = job.build(env)
    channel = f"collect-{uuid.uuid4().hex}"
    if stream is not None:
        stream.sink_to(CollectSink(channel))
    client = env.execute_async(name)
    collected = list(client._handle.collect_iterator(channel))  # type: ignore[attr-defined]
    result = client.get_job_execution_result().result(DEADLINE_S)
    values = list(job.results(directory)) if stream is None else collected
    lines = _in_order(values, getattr(job, "key_of", None))
    return lines, {name: result.get_accumulator_result(name) for name in getattr(job, "ACCUMULATORS", {})}


def _in_order(values: Iterable[Any], key_of: Any) -> list[str]:
    if key_of is None:
        return sorted(map(str, values))
    # stable: within a key the order stays as it came
    return [str(value) for value in sorted(values, key=lambda value: str(key_of(value)))]


def read_golden(name: str) -> list[str]:
    """What the job must give."""
    return (GOLDEN / f"{name}.txt").read_text().splitlines()
