"""Formats of changes in JSON: ``debezium-json``, ``canal-json`` and ``maxwell-json``."""
