"""Compiled plans: optimized plans as JSON, which later versions read."""
