"""Checkpoints of a job: when they are taken, which are complete, what a job is restored from. No I/O."""
