"""Keyed state as columns: the keys of a batch get slots, and a state has one typed array per column.

An operator on column batches looks up the distinct keys of a batch at once, computes on arrays of all its keys, and
marks what changed. On the hashmap backend the arrays are the state; on other backends they hold the keys of one batch.
In snapshots a key has a tuple of its columns, as a value state has it, so backends read each other's savepoints.
"""
