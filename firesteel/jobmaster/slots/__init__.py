"""Slots of a job: how many it needs, which it has, and which it lost. No I/O."""
