"""Avro messages and container files."""
