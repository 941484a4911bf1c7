"""Clocks, threads, futures, stacks and fault points of a process."""
