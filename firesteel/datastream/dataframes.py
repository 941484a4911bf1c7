"""Access to Spark DataFrames, which are imported only if a program uses them."""

from __future__ import annotations

import importlib
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.spi.sink import Sink
from firesteel.spi.source import Source

__all__ = ["create_dataframe", "dataframe_sink", "dataframe_source", "spark_reader_source"]

_SOURCES = "firesteel.spark.dataframes.source"
_RESULTS = "firesteel.spark.dataframes.results"


def dataframe_source(dataframe: Any, as_tuples: bool) -> Source[Any]:
    """A source of the rows of a DataFrame."""
    source: Source[Any] = importlib.import_module(_SOURCES).DataFrameSource(dataframe, as_tuples)
    return source


def spark_reader_source(format: str, path: Any, schema: Any, options: dict[str, Any], as_tuples: bool) -> Source[Any]:
    """A source of what one of Spark's readers reads."""
    reader = importlib.import_module(_SOURCES).SparkReaderSource
    source: Source[Any] = reader(format, path, schema, options, as_tuples)
    return source


def dataframe_sink(schema: Any, type_info: Any, configuration: Configuration) -> Sink:
    """The sink in which the program behind a DataFrame ends."""
    sink: Sink = importlib.import_module(_RESULTS).DataFrameSink.of(schema, type_info, configuration)
    return sink


def create_dataframe(job_graph: JobGraph, sink: Sink) -> Any:
    """The DataFrame of what reaches the sink."""
    return importlib.import_module(_RESULTS).create_dataframe(job_graph, sink)
