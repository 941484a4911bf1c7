"""Slots of a job: how many it needs, holds and has lost. No I/O."""
