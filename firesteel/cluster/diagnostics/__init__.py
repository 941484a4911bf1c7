"""Diagnostics of a JobManager: metrics, flame graphs, queryable state, logs."""
