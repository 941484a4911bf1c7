"""Batch execution: one stage per vertex, with a sort by key at each keyed exchange."""
