"""State processor API on Spark DataFrames: reads any state of a savepoint, and writes new or changed savepoints.

Modelled on Flink's State Processor API. Reading and writing run in parallel on Spark's executors.
"""

from __future__ import annotations

from firesteel.spark.state_processor.reader import SavepointReader
from firesteel.spark.state_processor.reader_function import KeyedStateReaderFunction
from firesteel.spark.state_processor.writer import SavepointWriter

__all__ = ["KeyedStateReaderFunction", "SavepointReader", "SavepointWriter"]
