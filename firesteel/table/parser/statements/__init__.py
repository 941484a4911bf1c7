"""Statements of Flink SQL other than queries, as frozen dataclasses."""
