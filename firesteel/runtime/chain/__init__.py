"""Operator chains: operators in their place in a task, and the output at the end."""
