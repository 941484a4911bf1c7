"""Aggregation without windows: group aggregates, their local and global phases, and grouping sets.

A *call* of an aggregate function has an accumulator, whose columns are in a columnar keyed state. Rows reach
accumulators through *feeds*, which apply FILTER, drop nulls and keep the counts of DISTINCT. A *handler* has all
calls of an operator; accumulators that two calls have in common, such as the count of AVG(x) and
SUM(x), are there once.
"""
