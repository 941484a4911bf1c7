"""Chaos runs: a job, faults drawn from a seed, and a judgement of the output."""
