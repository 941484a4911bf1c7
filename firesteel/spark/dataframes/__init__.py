"""Spark's DataFrames as sources of a program, and streams of a program as DataFrames."""
