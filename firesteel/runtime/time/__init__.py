"""Timers and watermarks."""
