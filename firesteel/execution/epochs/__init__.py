"""Execution in epochs: all stages of a job run once per epoch, and each epoch ends with a checkpoint."""
