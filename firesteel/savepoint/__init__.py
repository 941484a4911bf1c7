"""Inspection of savepoints and checkpoints, and their compatibility with a program; independent of Spark."""
