"""Firesteel: Apache Flink's programming model and runtime in Python, on Apache Spark."""

from firesteel import moved_modules

__version__ = "0.1.0"

moved_modules.install()
