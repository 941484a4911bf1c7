"""Runs generated programs in many ways, with faults."""
