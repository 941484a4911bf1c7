"""Epochs and stages without Spark."""
