"""A task: its input, its chain, its part of checkpoints, and its metrics."""
