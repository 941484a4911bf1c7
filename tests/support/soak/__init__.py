"""Soaks: jobs that run for a long time, and measures of what grows."""
