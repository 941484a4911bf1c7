"""Firesteel: Apache Flink's programming model and runtime in Python, on Apache Spark."""

__version__ = "0.1.0"
