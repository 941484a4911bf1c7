"""Deterministic simulation of a whole cluster in one process, one thread and virtual time, with faults from a seed."""
