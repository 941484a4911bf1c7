"""Calls of user-defined functions: Firesteel beside PyFlink in process and thread mode, and Spark's own Python UDFs.

``python -m benchmarks.user_functions [--rows N] [--pyflink PYTHON] [--json FILE]`` runs the same function, ``a + b`` of
two BIGINT columns, row by row and with pandas, as a job with parallelism 2 from a generator to a sink that drops rows.
Each system
runs in a process of its own, first with few rows and then with more; the figure is the difference, so that the start
of the system does not count. ``kernel`` is Firesteel's call alone, without a job, in processor time of one core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WARM_UP = 0.1
"""The share of rows of the first run."""
SYSTEMS = ("firesteel", "pyflink process", "pyflink thread", "spark")
_DDL = (
    "CREATE TABLE numbers (a BIGINT, b BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', "
    "'rows-per-second' = '1000000000', 'fields.a.min' = '0', 'fields.a.max' = '1000', 'fields.b.min' = '0', "
    "'fields.b.max' = '1000')"
)


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _table_job(package: str, kind: str, mode: str) -> Callable[[int], None]:
    """A job of the Table API, of Firesteel or PyFlink."""
    table = __import__(f"{package}.table", fromlist=["TableEnvironment"])
    functions = __import__(f"{package}.table.udf", fromlist=["udf"])
    func_type = "general" if kind == "row" else kind
    plus = functions.udf(_plus, result_type="BIGINT", func_type=func_type)

    def run(rows: int) -> None:
        environment = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
        environment.get_config().set("parallelism.default", "2")
        if mode:
            environment.get_config().set("python.execution-mode", mode)
        environment.create_temporary_function("plus_", plus)
        environment.execute_sql(_DDL.format(rows=rows))
        environment.execute_sql("CREATE TABLE dropped (c BIGINT) WITH ('connector' = 'blackhole')")
        environment.execute_sql("INSERT INTO dropped SELECT plus_(a, b) FROM numbers").wait()

    return run


def _spark_job(kind: str) -> Callable[[int], None]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    plus = f.udf(_plus, "bigint") if kind == "row" else f.pandas_udf(_plus, "bigint")  # type: ignore[call-overload]

    def run(rows: int) -> None:
        numbers = session.range(0, rows, 1, 2).selectExpr("id % 1001 AS a", "id % 997 AS b")
        numbers.select(plus("a", "b")).write.format("noop").mode("overwrite").save()

    return run


def _measure(system: str, kind: str, rows: int) -> float:
    """Calls per second, in this process."""
    name, _, mode = system.partition(" ")
    job = _spark_job(kind) if name == "spark" else _table_job(name, kind, mode)
    few = int(rows * WARM_UP)
    times = []
    for count in (few, few, rows):
        started = time.perf_counter()
        job(count)
        times.append(time.perf_counter() - started)
    return (rows - few) / max(times[2] - times[1], 1e-9)


def _in_process(python: str, system: str, kind: str, rows: int) -> float | None:
    command = [python, str(Path(__file__).resolve()), "--run", system, kind, str(rows)]
    # paths of the checkout, for Firesteel
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False, timeout=900)
    lines = [line for line in done.stdout.splitlines() if line.startswith("calls/s ")]
    if not lines:
        print(f"{system} {kind} failed:", done.stderr[-500:], file=sys.stderr)
        return None
    return float(lines[-1].split()[1])


def kernel_ns(kind: str, rows: int = 10_000, repeats: int = 200) -> float:
    """Processor time of one call in a batch, without a job."""
    import numpy as np
    import pyarrow as pa

    from firesteel.table.bound.nodes import Call, InputRef
    from firesteel.table.evaluation.vector_codegen import compile_vector
    from firesteel.table.udf import udf
    from firesteel.table.user_functions.definition import definition_of_wrapper
    from firesteel.types.logical import BigIntType

    definition = definition_of_wrapper(udf(_plus, result_type="BIGINT", func_type="general" if kind == "row" else kind))
    arguments = tuple(InputRef(BigIntType(), index, name) for index, name in enumerate("ab"))
    call = Call(BigIntType(), definition.name, arguments, (), definition)
    evaluate = compile_vector([call])
    columns = [pa.array(np.arange(rows)), pa.array(np.arange(rows) * 2)]
    evaluate(columns, rows)
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        for _ in range(repeats // 5):
            evaluate(columns, rows)
        best = min(best, (time.process_time() - started) / (repeats // 5) / rows)
    return best * 1e9


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=4_000_000, help="of Firesteel; PyFlink gets a twentieth, Spark a half"
    )
    parser.add_argument("--pyflink", default=sys.executable, metavar="PYTHON", help="a Python with PyFlink")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--run", nargs=3, metavar=("SYSTEM", "KIND", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        system, kind, rows = options.run
        print("calls/s", _measure(system, kind, int(rows)))
        return
    figures: dict[str, dict[str, float | None]] = {}
    for kind in ("row", "pandas"):
        found: dict[str, float | None] = {"kernel_ns": kernel_ns(kind)}
        for system in SYSTEMS:
            python = options.pyflink if system.startswith("pyflink") else sys.executable
            share = 20 if system.startswith("pyflink") else 2 if system == "spark" else 1
            found[system] = _in_process(python, system, kind, options.rows // share)
        figures[kind] = found
    print("| function | kernel, ns/call | " + " | ".join(f"{system}, calls/s" for system in SYSTEMS) + " |")
    print("|---|---|" + "---|" * len(SYSTEMS))
    for kind, found in figures.items():
        own = found["firesteel"]
        cells = []
        for system in SYSTEMS:
            value = found[system]
            ratio = f" ({own / value:.1f}x)" if value and own and system != "firesteel" else ""
            cells.append("–" if value is None else f"{value:,.0f}{ratio}")
        print(f"| {kind} | {found['kernel_ns']:.0f} | {' | '.join(cells)} |")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    # a file that another Python runs cannot import the package
    sys.path[:0] = [str(HERE.parent)]
    main()
