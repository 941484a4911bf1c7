"""A program that has made its own SparkSession, run with an interpreter that is not the one of the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]

PROGRAM = """
from pyspark.sql import SparkSession
from firesteel.datastream import StreamExecutionEnvironment

session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment()
frame = env.from_collection([1, 2, 3]).map(lambda x: x * 2).to_dataframe("n BIGINT")
print(sorted(row.n for row in frame.collect()))
with env.from_collection([1, 2, 3]).map(lambda x: x + 1).execute_and_collect() as results:
    print(sorted(results))
session.stop()
"""


def test_python_workers_use_the_interpreter_of_the_program(tmp_path: Path) -> None:
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 'another python' >&2\nexit 1\n")
    other.chmod(0o755)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    environment |= {"PATH": f"{other.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "[2, 4, 6]\n[2, 3, 4]\n", done.stderr
