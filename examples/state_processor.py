"""Starts a job with state that it did not make itself: writes a DataFrame as a savepoint, and goes on from that."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from firesteel.common import Configuration, Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

SPENT_SO_FAR = [("ada", 120.0), ("grace", 80.5), ("ken", 9.5)]
ORDERS = [("ada", 10.0), ("linus", 5.0), ("ada", 2.5), ("grace", 1.0)]

TOTAL = ValueStateDescriptor("total", Types.DOUBLE())


class Total(KeyedProcessFunction):
    """How much each customer has spent: the state is the same whether this function made it or a DataFrame."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(TOTAL)

    def process_element(self, value: tuple[str, float], ctx: KeyedProcessFunction.Context) -> Iterable[str]:
        total = (self._total.value() or 0.0) + value[1]
        self._total.update(total)
        yield f"{value[0]:<6} {total:>7.2f}"


def write_savepoint(path: str) -> None:
    """Any SparkSession would do; the one that jobs run on keeps quiet."""
    from pyspark.sql import SparkSession

    from firesteel.spark.session.session import get_spark_context
    from firesteel.spark.state_processor import SavepointReader, SavepointWriter

    get_spark_context(Configuration(), slots=2)
    spark = SparkSession.builder.getOrCreate()
    spent = spark.createDataFrame(SPENT_SO_FAR, "customer string, spent double")
    writer = SavepointWriter.new_savepoint(spark).with_keyed_state(
        "totals", TOTAL, spent, key="customer", value="spent"
    )
    state = SavepointReader.read(spark, writer.write(path)).read_keyed_state("totals", "total")
    print(f"the savepoint has {state.count()} totals, {state.agg({'value': 'sum'}).collect()[0][0]:.2f} together")


def run_job(savepoint: str) -> None:
    configuration = Configuration().set_string("execution.state-recovery.path", savepoint)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    orders = env.from_collection(ORDERS).uid("orders")
    orders.key_by(lambda order: order[0]).process(Total()).name("Total").uid("totals").print()
    env.execute("totals")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--savepoint", help="where it is, or is written to (default: a temporary directory)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        savepoint = options.savepoint or f"{directory}/savepoint"
        if not Path(savepoint).exists():
            write_savepoint(savepoint)
        run_job(savepoint)


if __name__ == "__main__":
    main()
