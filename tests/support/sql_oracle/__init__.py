"""Statements, mutations of them, and whether Flink's own parser accepts them."""
