"""Runs batch jobs and epochs as ordinary Spark stages, with Spark's shuffle between them."""
